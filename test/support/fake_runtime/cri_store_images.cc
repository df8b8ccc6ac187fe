// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "test/support/fake_runtime/cri_store.h"
#include "test/support/fake_runtime/cri_store_internal.h"

namespace resmgr::test {

namespace {

constexpr uint64_t kImageBytes = 1'000'000;

bool IsNamed(const cri::Image& image, const std::string& name) {
  return image.id() == name || image.id() == "sha256:" + name ||
         std::find(image.repo_tags().begin(), image.repo_tags().end(), name) !=
             image.repo_tags().end();
}

}  // namespace

void CriStore::AddImage(const std::string& name) {
  cri::Image image;
  image.set_id(fmt::format(
      "{}{:064x}", options_.bare_image_ids ? "" : "sha256:", std::hash<std::string>()(name)));
  image.set_pinned(name == options_.pinned_image);
  image.add_repo_tags(name);
  image.set_size(kImageBytes);
  images_[image.id()] = image;
}

std::string CriStore::FindImage(const std::string& name) const {
  for (const auto& [id, image] : images_) {
    if (IsNamed(image, name)) return id;
  }
  return "";
}

grpc::Status CriStore::ListImages(const cri::ListImagesRequest& request,
                                  cri::ListImagesResponse* response) {
  const std::string& wanted = request.filter().image().image();
  for (const auto& [id, image] : images_) {
    if (wanted.empty() || IsNamed(image, wanted)) *response->add_images() = image;
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::StreamImages(const cri::StreamImagesRequest& request,
                                    std::vector<cri::StreamImagesResponse>* replies) {
  const std::string& wanted = request.filter().image().image();
  replies->emplace_back();
  for (const auto& [id, image] : images_) {
    if (!wanted.empty() && !IsNamed(image, wanted)) continue;
    if (replies->back().images_size() == kStreamChunk) replies->emplace_back();
    *replies->back().add_images() = image;
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::ImageStatus(const cri::ImageStatusRequest& request,
                                   cri::ImageStatusResponse* response) {
  // An unknown image is an empty answer, not an error.
  const auto found = images_.find(FindImage(request.image().image()));
  if (found != images_.end()) *response->mutable_image() = found->second;
  return grpc::Status::OK;
}

grpc::Status CriStore::PullImage(const cri::PullImageRequest& request,
                                 cri::PullImageResponse* response) {
  const std::string& name = request.image().image();
  if (name.empty()) return Unknown("failed to parse image reference \"\": invalid reference");
  if (FindImage(name).empty()) AddImage(name);
  response->set_image_ref(FindImage(name));
  return grpc::Status::OK;
}

grpc::Status CriStore::RemoveImage(const cri::RemoveImageRequest& request,
                                   cri::RemoveImageResponse* /*response*/) {
  images_.erase(FindImage(request.image().image()));
  return grpc::Status::OK;
}

grpc::Status CriStore::ImageFsInfo(const cri::ImageFsInfoRequest& /*request*/,
                                   cri::ImageFsInfoResponse* response) {
  auto* usage = response->add_image_filesystems();
  usage->set_timestamp(WallClockNanoseconds());
  usage->mutable_fs_id()->set_mountpoint("/var/lib/fake");
  usage->mutable_used_bytes()->set_value(kImageBytes * images_.size());
  return grpc::Status::OK;
}

}  // namespace resmgr::test
