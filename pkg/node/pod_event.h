// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace resmgr {

// What Kubernetes is to show as an Event of a pod. A value; texts are fit for a terminal.
struct PodEvent {
  std::string pod_namespace{};
  std::string pod{};  // its name
  std::string uid{};
  bool warning = false;
  std::string reason{};   // CPURefused, ...
  std::string message{};  // 1024 bytes at most
  int64_t count = 1;
  std::chrono::system_clock::time_point last{};  // when it happened last

  bool IsSame(const PodEvent& other) const {
    return uid == other.uid && pod == other.pod && pod_namespace == other.pod_namespace &&
           warning == other.warning && reason == other.reason && message == other.message;
  }
};

}  // namespace resmgr
