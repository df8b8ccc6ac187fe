// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>

#include "pkg/base/sanitizers.h"

namespace resmgr {

// Keeps freed memory of one size for the next object, up to kMost pieces for each thread.
template <size_t kSize, size_t kMost>
class KeptMemory {
 public:
#if RESMGR_ASAN
  static void* Take() {
    return ::operator new(kSize);
  }
  static void Give(void* piece) {
    ::operator delete(piece);
  }
#else
  static void* Take() {
    Pieces& mine = Mine();
    if (mine.first == nullptr) return ::operator new(kSize);
    Piece* const piece = mine.first;
    mine.first = piece->next;
    --mine.count;
    return piece;
  }
  static void Give(void* memory) {
    Pieces& mine = Mine();
    if (mine.count == kMost) return ::operator delete(memory);
    mine.first = new (memory) Piece{mine.first};
    ++mine.count;
  }

 private:
  struct Piece {
    Piece* next = nullptr;
  };
  static_assert(kSize >= sizeof(Piece));
  struct Pieces {
    Pieces() = default;
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;
    ~Pieces() {
      while (first != nullptr) {
        Piece* const piece = first;
        first = piece->next;
        ::operator delete(piece);
      }
    }
    Piece* first = nullptr;
    size_t count = 0;
  };
  static Pieces& Mine() {
    thread_local Pieces pieces;
    return pieces;
  }
#endif
};

// Base of classes whose objects are made and destroyed with every call: their memory is kept for
// the next object. Derived classes must not have another size.
//
//   class Stream : public Recycled<Stream> { ... };
template <typename T>
class Recycled {
 public:
  static void* operator new(size_t) { return KeptMemory<sizeof(T), kMost>::Take(); }
  static void operator delete(void* piece) { KeptMemory<sizeof(T), kMost>::Give(piece); }

 protected:
  Recycled() = default;
  ~Recycled() = default;

 private:
  static constexpr size_t kMost = 64;
};

}  // namespace resmgr
