// SPDX-License-Identifier: Apache-2.0
#include "agent/cpus_annotation.h"

#include <utility>

namespace resmgr::agent {

Status CpusAnnotation::Show(std::string value) {
  if (value.size() > kMaxValue) {
    return InvalidArgument("the node's CPUs take {} bytes: {} are the limit of the annotation {}",
                           value.size(), kMaxValue, kCpusAnnotation);
  }
  wanted_ = std::move(value);
  Write();
  return OkStatus();
}

void CpusAnnotation::NodeSeen(const Json& node) {
  shown_ = TextAt(node, {"metadata", "annotations", kCpusAnnotation});
  Write();
}

// A value that was written but not seen yet may be written once more, with no effect.
void CpusAnnotation::Write() {
  if (!wanted_ || !shown_) return;
  const Json value = wanted_->empty() ? Json(nullptr) : Json(*wanted_);
  const Json& waiting = reporter_.taken_along();
  const auto found = waiting.find(kCpusAnnotation);
  if (found == waiting.end() ? *wanted_ == *shown_ : *found == value) return;
  // If the reporter refuses because too much waits, the next change of the node tries again.
  reporter_.TakeAlong({{std::string(kCpusAnnotation), value}});
}

}  // namespace resmgr::agent
