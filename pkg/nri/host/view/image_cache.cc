// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/image_cache.h"

#include <utility>

namespace resmgr::nri {

namespace {

bool NeverChanges(std::string_view reference) {
  return reference.starts_with("sha256:") || reference.find("@sha256:") != std::string_view::npos;
}

}  // namespace

void ImageCache::Find(const PodSandboxId& pod, std::string_view reference, Done done) {
  if (reference.empty()) return done(nullptr);
  if (const auto known = known_.find(reference); known != known_.end()) {
    return done(&known->second);
  }
  runtime_.InspectImage(
      pod, reference,
      lifetime_.Guard([this, name = std::string(reference),
                       done = std::move(done)](const StatusOr<ImageFacts>& facts) {
        if (!facts.ok()) return done(nullptr);
        if (NeverChanges(name)) Remember(name, *facts);
        done(&*facts);
      }));
}

void ImageCache::Remember(const std::string& reference, const ImageFacts& facts) {
  if (!known_.emplace(reference, facts).second) return;
  order_.push_back(reference);
  if (order_.size() <= kMost) return;
  known_.erase(order_.front());
  order_.pop_front();
}

}  // namespace resmgr::nri
