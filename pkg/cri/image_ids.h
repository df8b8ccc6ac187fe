// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace resmgr {

// Fields of an Image, and fields of a Container that name its image.
inline constexpr uint32_t kIdOfImage = 1;
inline constexpr uint32_t kPinnedOfImage = 8;
inline constexpr uint32_t kRefOfContainer = 5;  // Container.image_ref: an id in containerd
inline constexpr uint32_t kImageIdOfContainer = 10;

// Normalizes images' ids: containerd writes "sha256:" before the digits, CRI-O writes the digits
// alone and finds no image by the other form. Behind several runtimes a kubelet would take the two
// forms for two images, and collect the one that no container names. Therefore, if runtimes differ,
// clients get the digits alone, which both accept. Loop's thread only.
class ImageIds {
 public:
  // The digits of an id in either form; empty: it is not an id.
  static std::string_view DigitsOf(std::string_view text);

  // The kinds of replies that have ids of images.
  enum class In {
    kNone,
    kImages,      // a list of images, or ImageStatusResponse, which has its image in field 1, too
    kContainers,  // a list of containers
    kPull,        // PullImageResponse
    kStatus,      // ContainerStatusResponse
    kPodStatus,   // PodSandboxStatusResponse, with statuses of containers
    kEvent        // ContainerEventResponse, with statuses of containers
  };

  // Learns the forms of the ids in the reply.
  void Note(In in, std::string_view reply);
  // The reply for clients; nullopt: unchanged.
  std::optional<std::string> AsShown(In in, std::string_view reply) const;

 private:
  // Never reset while the daemon runs: if an id changed its form again, a client would count two
  // images.
  bool with_prefix_ = false;
  bool digits_alone_ = false;
};

}  // namespace resmgr
