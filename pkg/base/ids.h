// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <utility>

namespace resmgr {

// A string that cannot be mistaken for another kind of id.
template <typename Tag>
class Id {
 public:
  Id() = default;
  explicit Id(std::string value) : value_(std::move(value)) {}

  const std::string& value() const { return value_; }
  bool empty() const { return value_.empty(); }

  friend auto operator<=>(const Id&, const Id&) = default;

 private:
  std::string value_;
};

// The runtime's id of a container: known once the runtime answered CreateContainer.
using ContainerId = Id<struct ContainerIdTag>;
// The runtime's id of a pod sandbox.
using PodSandboxId = Id<struct PodSandboxIdTag>;
// Kubernetes' UID of a pod; several sandboxes may carry the same one, one after the other.
using PodUid = Id<struct PodUidTag>;

}  // namespace resmgr

template <typename Tag>
struct std::hash<resmgr::Id<Tag>> {
  size_t operator()(const resmgr::Id<Tag>& id) const {
    return std::hash<std::string>()(id.value());
  }
};
