// SPDX-License-Identifier: Apache-2.0
// Images of two runtimes that write the ids differently, as containerd (the default one here) and
// CRI-O do, as a kubelet that collects unused images sees them.
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "test/integration/daemon_fixture.h"

namespace resmgr::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kImage = "docker.io/local/app:1";
constexpr const char* kPause = "docker.io/local/pause:1";

class ImageIdsTest : public DaemonTest {
 protected:
  void SetUp() override {
    std::ofstream(Path("node.yaml")) << "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
                                     << "runtimes: {crio: {Socket: " << Path("crio.sock") << "}}\n"
                                     << "runtimeClasses: {crio: {Runtime: crio}}\n";
    StartRuntime();
    ASSERT_THAT(crio_.Start(Path("crio.sock")), IsOk());
    StartDaemon(Flags({"-config", Path("node.yaml")}));
    ASSERT_NE(daemon_, nullptr);
    client_ = std::make_unique<CriClient>(Relayed());
  }

  std::string Pull(const std::string& image, const std::string& handler) {
    cri::PullImageRequest request;
    request.mutable_image()->set_image(image);
    request.mutable_image()->set_runtime_handler(handler);
    cri::PullImageResponse response;
    EXPECT_TRUE(client_->Unary("PullImage", request, &response).ok());
    return response.image_ref();
  }
  std::string RunOf(const std::string& name, const std::string& handler) {
    const auto pod = client_->RunPod(MakeBestEffortPod(name), handler);
    EXPECT_THAT(pod, IsOk());
    cri::ContainerConfig container = MakeBestEffortContainer(name);
    container.mutable_image()->set_image(kImage);
    const auto id = client_->CreateContainer(*pod, MakeBestEffortPod(name), container);
    EXPECT_THAT(id, IsOk());
    return id.value_or("");
  }
  std::string ImageOf(const std::string& container) {
    cri::ContainerStatusRequest request;
    request.set_container_id(container);
    cri::ContainerStatusResponse response;
    EXPECT_TRUE(client_->Unary("ContainerStatus", request, &response).ok());
    return response.status().image_id();
  }
  std::vector<cri::Image> List() {
    cri::ListImagesResponse list;
    EXPECT_TRUE(client_->Unary("ListImages", cri::ListImagesRequest(), &list).ok());
    return {list.images().begin(), list.images().end()};
  }
  std::vector<cri::Image> Of(const std::string& tag) {
    std::vector<cri::Image> images = List();
    std::erase_if(images, [&](const cri::Image& image) { return image.repo_tags(0) != tag; });
    return images;
  }
  grpc::Status Remove(const std::string& image) {
    cri::RemoveImageRequest request;
    request.mutable_image()->set_image(image);
    cri::RemoveImageResponse response;
    return client_->Unary("RemoveImage", request, &response);
  }
  // Removes images as a kubelet that needs room does: images that are not pinned and that no
  // container's image_id names.
  std::vector<std::string> Collect() {
    const std::vector<cri::Image> images = List();
    cri::ListContainersResponse containers;
    EXPECT_TRUE(client_->Unary("ListContainers", cri::ListContainersRequest(), &containers).ok());
    std::set<std::string> used;
    for (const cri::Container& container : containers.containers())
      used.insert(container.image_id());
    std::vector<std::string> removed;
    for (const cri::Image& image : images) {
      if (image.pinned() || used.contains(image.id())) continue;
      removed.push_back(image.repo_tags(0));
      EXPECT_TRUE(Remove(image.id()).ok()) << image.id();
    }
    return removed;
  }
  static bool Has(FakeRuntime& runtime, const std::string& image) {
    return runtime.WithStore([&](CriStore& store) {
      cri::ImageStatusRequest request;
      request.mutable_image()->set_image(image);
      cri::ImageStatusResponse response;
      store.ImageStatus(request, &response);
      return response.has_image();
    });
  }

  FakeRuntime crio_{
      {.store = {.first_id = 1'000'000, .bare_image_ids = true, .pinned_image = kPause}}};
  std::unique_ptr<CriClient> client_;
};

TEST_F(ImageIdsTest, AnImageOfBothIsListedOnceByAnIdThatBothTake) {
  Pull(kImage, "");
  Pull(kImage, "crio");
  const std::vector<cri::Image> images = Of(kImage);
  ASSERT_EQ(images.size(), 1U);
  for (FakeRuntime* const runtime : {&runtime_, &crio_})
    EXPECT_TRUE(Has(*runtime, images[0].id())) << images[0].id();
  // A kubelet creates containers by the id that it finds here.
  cri::ImageStatusRequest request;
  request.mutable_image()->set_image(kImage);
  cri::ImageStatusResponse status;
  ASSERT_TRUE(client_->Unary("ImageStatus", request, &status).ok());
  EXPECT_EQ(status.image().id(), images[0].id());
  // A kubelet uses the answer to a pull to know later whose pull secrets the image needs.
  EXPECT_EQ(Pull(kImage, ""), images[0].id());
  EXPECT_EQ(Pull(kImage, "crio"), images[0].id());
  std::set<std::string> streamed;
  const auto stream = client_->Call(client_->PathOf("StreamImages"), {""});
  ASSERT_TRUE(stream.status.ok()) << stream.status.error_message();
  for (const std::string& message : stream.messages) {
    cri::StreamImagesResponse part;
    ASSERT_TRUE(part.ParseFromString(message));
    for (const cri::Image& image : part.images())
      if (image.repo_tags(0) == kImage) streamed.insert(image.id());
  }
  EXPECT_THAT(streamed, ElementsAre(images[0].id()));
}

TEST_F(ImageIdsTest, WhatAContainerOfEitherRuntimeUsesIsNotCollected) {
  Pull(kImage, "");
  Pull(kImage, "crio");
  const std::string here = RunOf("here", "");
  EXPECT_EQ(ImageOf(here), Of(kImage)[0].id());
  EXPECT_THAT(Collect(), testing::Not(testing::Contains(kImage)));
  EXPECT_THAT(client_->RemoveContainer(here), IsOk());
  const std::string there = RunOf("there", "crio");
  EXPECT_EQ(ImageOf(there), Of(kImage)[0].id());
  EXPECT_THAT(Collect(), testing::Not(testing::Contains(kImage)));
  EXPECT_TRUE(Has(crio_, kImage));
  EXPECT_THAT(client_->RemoveContainer(there), IsOk());
  EXPECT_THAT(Collect(), testing::Contains(kImage));
  EXPECT_FALSE(Has(crio_, kImage));
  EXPECT_FALSE(Has(runtime_, kImage));
}

TEST_F(ImageIdsTest, RemovingSparesTheRuntimeThatHasContainersOfTheImage) {
  Pull(kImage, "");
  Pull(kImage, "crio");
  RunOf("here", "");
  for (const std::string& image : {Of(kImage)[0].id(), std::string(kImage)}) {
    EXPECT_TRUE(Remove(image).ok());
    EXPECT_TRUE(Has(runtime_, kImage)) << image;
    EXPECT_FALSE(Has(crio_, kImage)) << image;
    Pull(kImage, "crio");
  }
  RunOf("there", "crio");
  const grpc::Status refused = Remove(kImage);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("runtimes default, crio pin it or have"));
  EXPECT_TRUE(Has(runtime_, kImage));
  EXPECT_TRUE(Has(crio_, kImage));
}

// The image of its pod sandboxes, which no container names.
TEST_F(ImageIdsTest, WhatOneRuntimePinsIsPinned) {
  Pull(kPause, "");
  Pull(kPause, "crio");
  ASSERT_EQ(Of(kPause).size(), 1U);
  EXPECT_TRUE(Of(kPause)[0].pinned());
  EXPECT_TRUE(Remove(kPause).ok());
  EXPECT_FALSE(Has(runtime_, kPause));
  EXPECT_TRUE(Has(crio_, kPause));
}

// The images that it needs are not known; the others' room is freed all the same.
TEST_F(ImageIdsTest, ARuntimeThatIsAwayHoldsUpNoRemoval) {
  Pull(kImage, "");
  crio_.Stop();
  const grpc::Status removed = Remove(kImage);
  EXPECT_EQ(removed.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(removed.error_message(), HasSubstr("runtime crio"));
  EXPECT_FALSE(Has(runtime_, kImage));
}

}  // namespace
}  // namespace resmgr::test
