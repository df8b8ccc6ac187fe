// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace resmgr {

// Fields of an Image, and those of a Container that name its image.
inline constexpr uint32_t kIdOfImage = 1;
inline constexpr uint32_t kPinnedOfImage = 8;
inline constexpr uint32_t kRefOfContainer = 5;  // Container.image_ref: an id at containerd
inline constexpr uint32_t kImageIdOfContainer = 10;

// Ids of images: containerd writes "sha256:" before the digits, CRI-O writes the digits alone and
// finds no image by the other form. Behind several runtimes a kubelet takes the two forms for two
// images, and collects the one that no container names. So where runtimes differ, clients are shown
// the digits alone, which both take. Loop's thread only.
class ImageIds {
 public:
  // The digits of an id in either form; empty: it is none.
  static std::string_view DigitsOf(std::string_view text);

  // Replies with such ids.
  enum class In {
    kNone,
    kImages,      // a list of images, or ImageStatusResponse, which has its image in the same field
    kContainers,  // a list of containers
    kPull,        // PullImageResponse
    kStatus,      // ContainerStatusResponse
    kPodStatus,   // PodSandboxStatusResponse, with statuses of containers
    kEvent        // ContainerEventResponse, likewise
  };

  // Learns the forms of the ids in the reply.
  void Note(In in, std::string_view reply);
  // The reply as clients are to see it; nullopt: as it is.
  std::optional<std::string> AsShown(In in, std::string_view reply) const;

 private:
  // Once seen, for the life of this daemon: a form that changed again would be two images, too.
  bool with_prefix_ = false;
  bool digits_alone_ = false;
};

}  // namespace resmgr
