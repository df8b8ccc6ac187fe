// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/http.h"
#include "agent/status_reporter.h"
#include "pkg/base/status.h"

namespace resmgr::agent {

// The annotation of the node that tells which of its CPUs are allocated (docs/annotations.md).
inline constexpr std::string_view kCpusAnnotation = "cri-resource-manager.intel.com/cpus";

// Keeps the annotation equal to the daemon's last value. It is sent with the reporter's PATCHes, at
// some time within the spread and without reading the node before; if the node shows the value
// already, it is not sent. A node that shows another value, like one that was made anew, gets it
// again. Thread-compatible.
class CpusAnnotation {
 public:
  // Bytes of a value: enough for some hundred NUMA nodes. All annotations of an object together may
  // have 256 KiB.
  static constexpr size_t kMaxValue = 8192;

  // The reporter must outlive this object.
  explicit CpusAnnotation(StatusReporter& reporter) : reporter_(reporter) {}

  // "" removes the annotation. kInvalidArgument: longer than kMaxValue.
  Status Show(std::string value);
  // Takes the node's object as it is now. Nothing is written before the first one.
  void NodeSeen(const Json& node);

 private:
  void Write();

  StatusReporter& reporter_;
  std::optional<std::string> wanted_;  // nullopt: the daemon has set none
  std::optional<std::string> shown_;   // as seen last; "" if absent
};

}  // namespace resmgr::agent
