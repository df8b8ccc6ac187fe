// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace resmgr {

// Base of classes whose objects come and go with every call: their memory is kept for the next one
// instead of being given back, each thread's own, up to kMost pieces. Not for classes with derived
// classes of another size.
//
//   class Stream : public Recycled<Stream> { ... };
template <typename T>
class Recycled {
 public:
#if !defined(__SANITIZE_ADDRESS__)
  static void* operator new(size_t size) {
    Kept& kept = Mine();
    if (kept.count == 0) return ::operator new(size);
    return kept.pieces[--kept.count];
  }
  static void operator delete(void* piece) {
    Kept& kept = Mine();
    if (kept.count == kMost) {
      ::operator delete(piece);
    } else {
      kept.pieces[kept.count++] = piece;
    }
  }
#endif

 protected:
  Recycled() = default;
  ~Recycled() = default;

 private:
  static constexpr size_t kMost = 64;
  struct Kept {
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() {
      while (count > 0)
        ::operator delete(pieces[--count]);
    }
    std::array<void*, kMost> pieces;
    size_t count = 0;
  };
  static Kept& Mine() {
    thread_local Kept kept;
    return kept;
  }
};

}  // namespace resmgr
