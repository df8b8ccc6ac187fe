// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace resmgr::agent {

// The state of the configuration that applies to the node.
struct Verdict {
  enum class State {
    kUnknown,   // not all of the cluster has been seen yet
    kNone,      // no ConfigMap applies; the daemon keeps its configuration
    kPending,   // the daemon has not been reached
    kAccepted,  // the daemon runs it
    kRejected,  // the daemon keeps its former configuration
  };

  State state = State::kUnknown;
  std::string map{};      // its name; empty with kUnknown and kNone
  std::string version{};  // its resourceVersion
  // The version with which its content came; later ones differ in metadata only.
  std::string content_version{};
  std::string reason{};  // for kPending and kRejected

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// "accepted", for the annotation and logs.
std::string_view ToString(Verdict::State state);

// Empty if all is well, else one line that describes the problem.
std::string Complaint(const Verdict& verdict);

}  // namespace resmgr::agent
