// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace resmgr {

// A text with the type of its id, so that ids of different kinds cannot be mixed up. A value type,
// thread-compatible. Ids of runtimes and Kubernetes have 64 characters at most and are held in the
// object itself: ids are made and passed on with every call, and an allocation for each would be
// most of the cost.
template <typename Tag>
class Id {
 public:
  Id() = default;
  explicit Id(std::string_view value) : size_(value.size()) {
    if (size_ <= kNear) {
      value.copy(near_.data(), size_);
    } else {
      far_ = std::make_unique<std::string>(value);
    }
  }
  Id(const Id& other) : near_(other.near_), size_(other.size_), far_(other.CopyFar()) {}
  Id& operator=(const Id& other) {
    if (this == &other) return *this;
    near_ = other.near_;
    size_ = other.size_;
    far_ = other.CopyFar();
    return *this;
  }
  // The moved-from id is empty.
  Id(Id&& other) noexcept { *this = std::move(other); }
  Id& operator=(Id&& other) noexcept {
    near_ = other.near_;
    size_ = std::exchange(other.size_, 0);
    far_ = std::move(other.far_);
    return *this;
  }
  ~Id() = default;

  // Valid until this object is changed, moved from or destroyed.
  std::string_view value() const { return far_ ? std::string_view(*far_) : Near(); }
  bool empty() const { return size_ == 0; }

  friend bool operator==(const Id& a, const Id& b) { return a.value() == b.value(); }
  friend auto operator<=>(const Id& a, const Id& b) { return a.value() <=> b.value(); }

 private:
  static constexpr size_t kNear = 64;

  std::string_view Near() const { return {near_.data(), size_}; }
  std::unique_ptr<std::string> CopyFar() const {
    return far_ ? std::make_unique<std::string>(*far_) : nullptr;
  }

  std::array<char, kNear> near_{};
  size_t size_ = 0;
  std::unique_ptr<std::string> far_;  // used in place of `near_` for long ids
};

// The runtime's id of a container: known once the runtime answered CreateContainer.
using ContainerId = Id<struct ContainerIdTag>;
// The runtime's id of a pod sandbox.
using PodSandboxId = Id<struct PodSandboxIdTag>;
// Kubernetes' UID of a pod; several sandboxes may carry the same one, one after the other.
using PodUid = Id<struct PodUidTag>;

// XXH3 of a text, for hash tables by ids of the runtime: for 64 characters it costs a third of the
// tables' default. Not for hashes that must be equal on another machine.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const;
  template <typename Tag>
  size_t operator()(const Id<Tag>& id) const {
    return (*this)(id.value());
  }
};

// The value of an ordered map whose key begins with this text, if only one key does or the text is
// a whole key: runtimes and people name pod sandboxes and containers by beginnings of their ids. A
// default-constructed value (nullptr) if no key or several match, and for "".
template <typename Map>
typename Map::mapped_type OnlyOneThatBeginsWith(const Map& by_id, std::string_view beginning) {
  if (beginning.empty()) return {};
  const auto found = by_id.lower_bound(beginning);
  if (found == by_id.end() || !found->first.starts_with(beginning)) return {};
  if (found->first.size() == beginning.size()) return found->second;
  const auto next = std::next(found);
  const bool unique = next == by_id.end() || !next->first.starts_with(beginning);
  return unique ? found->second : typename Map::mapped_type{};
}

}  // namespace resmgr

template <typename Tag>
struct std::hash<resmgr::Id<Tag>> {
  size_t operator()(const resmgr::Id<Tag>& id) const {
    return std::hash<std::string_view>()(id.value());
  }
};
