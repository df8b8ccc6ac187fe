// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "pkg/pipeline/runtime_access.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

// Facts about the images of containers that plugins are asked about, as the runtime of their pod
// has them. Images that are named by their digest never change; kMost of these are remembered.
// Loop's thread only.
class ImageCache {
 public:
  static constexpr size_t kMost = 256;

  // nullptr: unknown.
  using Done = std::function<void(const ImageFacts*)>;

  // The runtime outlives it.
  explicit ImageCache(RuntimeAccess& runtime) : runtime_(runtime) {}

  // Runs `done` at once if the image is remembered, or has no name.
  void Find(const PodSandboxId& pod, std::string_view reference, Done done);

 private:
  void Remember(const std::string& reference, const ImageFacts& facts);

  RuntimeAccess& runtime_;
  std::map<std::string, ImageFacts, std::less<>> known_;
  std::list<std::string> order_;  // least recently added first
  Lifetime lifetime_;
};

}  // namespace resmgr::nri
