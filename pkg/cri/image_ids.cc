// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/image_ids.h"

#include <array>
#include <span>
#include <utility>

#include "pkg/cri/edit_fields.h"

namespace resmgr {
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";

using Path = std::span<const uint32_t>;

// Returns the paths of the ids in such a reply.
std::array<Path, 2> PathsOf(ImageIds::In in) {
  constexpr uint32_t kListed = 1;  // entries of lists, and the image or status in a reply about one
  constexpr uint32_t kRefOfPull = 1;
  constexpr uint32_t kRefOfStatus = 9;
  constexpr uint32_t kImageIdOfStatus = 17;
  constexpr uint32_t kStatusesOfPod = 3;
  constexpr uint32_t kStatusesOfEvent = 5;

  static constexpr std::array kImage = {kListed, kIdOfImage};
  static constexpr std::array kContainerRef = {kListed, kRefOfContainer};
  static constexpr std::array kContainerImage = {kListed, kImageIdOfContainer};
  static constexpr std::array kPull = {kRefOfPull};
  static constexpr std::array kStatusRef = {kListed, kRefOfStatus};
  static constexpr std::array kStatusImage = {kListed, kImageIdOfStatus};
  static constexpr std::array kPodRef = {kStatusesOfPod, kRefOfStatus};
  static constexpr std::array kPodImage = {kStatusesOfPod, kImageIdOfStatus};
  static constexpr std::array kEventRef = {kStatusesOfEvent, kRefOfStatus};
  static constexpr std::array kEventImage = {kStatusesOfEvent, kImageIdOfStatus};
  switch (in) {
    case ImageIds::In::kNone:
      break;
    case ImageIds::In::kImages:
      return {kImage};
    case ImageIds::In::kContainers:
      return {kContainerRef, kContainerImage};
    case ImageIds::In::kPull:
      return {kPull};
    case ImageIds::In::kStatus:
      return {kStatusRef, kStatusImage};
    case ImageIds::In::kPodStatus:
      return {kPodRef, kPodImage};
    case ImageIds::In::kEvent:
      return {kEventRef, kEventImage};
  }
  return {};
}

// The reply with each id edited; nullopt: unchanged.
std::optional<std::string> EditIds(ImageIds::In in, std::string_view reply, const FieldEdit& edit) {
  std::optional<std::string> whole;
  for (const Path path : PathsOf(in)) {
    if (path.empty()) continue;
    auto edited = EditFields(whole ? std::string_view(*whole) : reply, path, edit);
    if (edited) whole = std::move(edited);
  }
  return whole;
}

}  // namespace

std::string_view ImageIds::DigitsOf(std::string_view text) {
  constexpr size_t kDigits = 64;
  if (text.starts_with(kDigestPrefix)) text.remove_prefix(kDigestPrefix.size());
  const bool is_id = text.size() == kDigits &&
                     text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_id ? text : std::string_view();
}

void ImageIds::Note(In in, std::string_view reply) {
  (void)EditIds(in, reply, [this](std::string_view id) -> std::optional<std::string> {
    if (!DigitsOf(id).empty())
      (id.starts_with(kDigestPrefix) ? with_prefix_ : digits_alone_) = true;
    return std::nullopt;
  });
}

std::optional<std::string> ImageIds::AsShown(In in, std::string_view reply) const {
  if (!with_prefix_ || !digits_alone_) return std::nullopt;
  return EditIds(in, reply, [](std::string_view id) -> std::optional<std::string> {
    const std::string_view digits = DigitsOf(id);
    if (digits.empty() || digits.size() == id.size()) return std::nullopt;
    return std::string(digits);
  });
}

}  // namespace resmgr
