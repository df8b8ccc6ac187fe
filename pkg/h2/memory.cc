// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/memory.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace resmgr::h2 {

namespace {

constexpr size_t kStep = 64;
constexpr size_t kClasses = 32;  // up to 2 KiB; larger pieces are rare and go to the system
constexpr size_t kKeptPerClass = 512;

// Stands before each piece.
struct alignas(std::max_align_t) Header {
  size_t capacity;
  Header* next;  // while it is free
};

class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (List& list : lists_) {
      while (list.first != nullptr) {
        Header* piece = list.first;
        list.first = piece->next;
        std::free(piece);
      }
    }
  }

  static Pool& Mine() {
    thread_local Pool pool;
    return pool;
  }

  void* Take(size_t size) {
    const size_t index = size == 0 ? 0 : (size - 1) / kStep;
    const size_t capacity = index < kClasses ? (index + 1) * kStep : size;
    if (index < kClasses && lists_[index].first != nullptr) {
      List& list = lists_[index];
      Header* piece = list.first;
      list.first = piece->next;
      --list.length;
      return piece + 1;
    }
    auto* piece = static_cast<Header*>(std::malloc(sizeof(Header) + capacity));
    if (piece == nullptr) return nullptr;
    piece->capacity = capacity;
    return piece + 1;
  }

  void Return(void* memory) {
    if (memory == nullptr) return;
    Header* piece = static_cast<Header*>(memory) - 1;
    const size_t index = piece->capacity / kStep - 1;
    if (piece->capacity % kStep != 0 || index >= kClasses ||
        lists_[index].length >= kKeptPerClass) {
      std::free(piece);
      return;
    }
    piece->next = lists_[index].first;
    lists_[index].first = piece;
    ++lists_[index].length;
  }

 private:
  struct List {
    Header* first = nullptr;
    size_t length = 0;
  };
  std::array<List, kClasses> lists_;
};

void* Allocate(size_t size, void*) {
  return Pool::Mine().Take(size);
}

void Release(void* memory, void*) {
  Pool::Mine().Return(memory);
}

void* AllocateZeroed(size_t count, size_t size, void*) {
  if (size != 0 && count > SIZE_MAX / size) return nullptr;
  void* memory = Pool::Mine().Take(count * size);
  if (memory != nullptr) std::memset(memory, 0, count * size);
  return memory;
}

void* Reallocate(void* memory, size_t size, void*) {
  if (memory == nullptr) return Pool::Mine().Take(size);
  const size_t capacity = (static_cast<Header*>(memory) - 1)->capacity;
  if (size <= capacity) return memory;
  void* larger = Pool::Mine().Take(size);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, memory, capacity);
  Pool::Mine().Return(memory);
  return larger;
}

}  // namespace

nghttp2_mem* PooledMemory() {
  static nghttp2_mem memory = {nullptr, Allocate, Release, AllocateZeroed, Reallocate};
  return &memory;
}

}  // namespace resmgr::h2
