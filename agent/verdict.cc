// SPDX-License-Identifier: Apache-2.0
#include "agent/verdict.h"

#include <fmt/format.h>

namespace resmgr::agent {

std::string_view ToString(Verdict::State state) {
  switch (state) {
    case Verdict::State::kUnknown:
      return "unknown";
    case Verdict::State::kNone:
      return "none";
    case Verdict::State::kPending:
      return "pending";
    case Verdict::State::kAccepted:
      return "accepted";
    case Verdict::State::kRejected:
      return "rejected";
  }
  return "";
}

std::string Complaint(const Verdict& verdict) {
  switch (verdict.state) {
    case Verdict::State::kUnknown:
      return "the node and its ConfigMaps have not been seen yet";
    case Verdict::State::kNone:
    case Verdict::State::kAccepted:
      return "";
    case Verdict::State::kPending:
      return fmt::format("ConfigMap {} is not delivered: {}", verdict.map, verdict.reason);
    case Verdict::State::kRejected:
      return fmt::format("ConfigMap {} is rejected: {}", verdict.map, verdict.reason);
  }
  return "";
}

}  // namespace resmgr::agent
