// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/image_ids.h"

#include <array>
#include <cstdint>

#include "pkg/cri/edit_fields.h"
#include "pkg/cri/for_each_field.h"

namespace resmgr {
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";

constexpr uint32_t kListedImage = 1;  // also ImageStatusResponse.image; Container of a list
constexpr std::array kPathOfImageId = {kListedImage, kIdOfImage};
constexpr std::array kPathOfContainerRef = {kListedImage, kRefOfContainer};
constexpr std::array kPathOfContainerImage = {kListedImage, kImageIdOfContainer};

}  // namespace

std::string_view ImageIds::DigitsOf(std::string_view text) {
  constexpr size_t kDigits = 64;
  if (text.starts_with(kDigestPrefix)) text.remove_prefix(kDigestPrefix.size());
  const bool is_id = text.size() == kDigits &&
                     text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_id ? text : std::string_view();
}

void ImageIds::Note(std::string_view id) {
  if (DigitsOf(id).empty()) return;
  (id.starts_with(kDigestPrefix) ? with_prefix_ : digits_alone_) = true;
}

void ImageIds::NoteImages(std::string_view reply) {
  (void)ForEachField(reply, [this](const WireReader& field) {
    if (field.field() == kListedImage && field.is_bytes())
      Note(TextOfField(field.bytes(), kIdOfImage));
    return true;
  });
}

void ImageIds::NoteContainers(std::string_view reply) {
  (void)ForEachField(reply, [this](const WireReader& field) {
    if (field.field() != kListedImage || !field.is_bytes()) return true;
    Note(TextOfField(field.bytes(), kRefOfContainer));
    Note(TextOfField(field.bytes(), kImageIdOfContainer));
    return true;
  });
}

std::optional<std::string> ImageIds::Shown(std::string_view id) const {
  const std::string_view digits = DigitsOf(id);
  if (digits.empty() || digits.size() == id.size()) return std::nullopt;
  return std::string(digits);
}

std::optional<std::string> ImageIds::ImagesAsShown(std::string_view reply) const {
  if (!with_prefix_ || !digits_alone_) return std::nullopt;
  return EditFields(reply, kPathOfImageId, [this](std::string_view id) { return Shown(id); });
}

std::optional<std::string> ImageIds::ContainersAsShown(std::string_view reply) const {
  if (!with_prefix_ || !digits_alone_) return std::nullopt;
  const auto shown = [this](std::string_view id) { return Shown(id); };
  std::optional<std::string> refs = EditFields(reply, kPathOfContainerRef, shown);
  std::optional<std::string> ids =
      EditFields(refs ? std::string_view(*refs) : reply, kPathOfContainerImage, shown);
  return ids ? std::move(ids) : std::move(refs);
}

}  // namespace resmgr
