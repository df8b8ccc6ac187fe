// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace resmgr {

// The API server's limit of a message in bytes.
inline constexpr size_t kLongestEventMessage = 1024;

// The contents of a Kubernetes Event of a pod or, without a name, namespace and UID, of the node
// itself. A value; texts are printable.
struct PodEvent {
  std::string pod_namespace{};
  std::string pod{};  // pod's name
  std::string uid{};
  bool warning = false;
  std::string reason{};   // CPURefused, ...
  std::string message{};  // at most 1024 bytes
  int64_t count = 1;
  std::chrono::system_clock::time_point last{};  // time of the last occurrence

  bool IsSame(const PodEvent& other) const {
    return uid == other.uid && pod == other.pod && pod_namespace == other.pod_namespace &&
           warning == other.warning && reason == other.reason && message == other.message;
  }
};

}  // namespace resmgr
