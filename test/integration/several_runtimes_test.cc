// SPDX-License-Identifier: Apache-2.0
// The daemon before two runtimes, of which one goes, comes back, or was never there: the other
// one's containers are not affected.
#include <array>
#include <chrono>
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

class SeveralRuntimesTest : public DaemonTest {
 protected:
  SeveralRuntimesTest() {
    std::ofstream(Path("node.yaml")) << "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
                                     << "runtimes: {kata: {Socket: " << KataSocket() << "}}\n"
                                     << "runtimeClasses: {kata: {Runtime: kata}}\n";
  }

  static constexpr std::array kHung = {"ListPodSandbox", "ListContainers", "Version", "Status"};
  void HangKata() {
    for (const char* const method : kHung)
      kata_.Script(method, {.hold = true});
  }
  std::string KataSocket() const { return Path("kata.sock"); }
  void StartKata() { ASSERT_THAT(kata_.Start(KataSocket()), IsOk()); }
  void Daemon() { StartDaemon(Flags({"-config", Path("node.yaml")})); }
  void StartAll() {
    StartRuntime();
    StartKata();
    Daemon();
    client_ = std::make_unique<CriClient>(Relayed());
    ASSERT_TRUE(Eventually([this] { return ListedAll(); }));
  }
  bool ListedAll() {
    cri::ListContainersResponse list;
    return client_->Unary("ListContainers", cri::ListContainersRequest(), &list).ok();
  }

  // A container in a pod of this handler, created and not started; "" where that fails.
  StatusOr<std::string> Create(const std::string& name, const std::string& handler, int cpus) {
    const auto pod = cpus > 0 ? MakeGuaranteedPod(name) : MakeBestEffortPod(name);
    const auto container =
        cpus > 0 ? MakeGuaranteedContainer(name, cpus) : MakeBestEffortContainer(name);
    RESMGR_ASSIGN_OR_RETURN(const std::string id, client_->RunPod(pod, handler));
    return client_->CreateContainer(id, pod, container);
  }
  std::string RunIn(const std::string& name, const std::string& handler, int cpus) {
    const auto id = Create(name, handler, cpus);
    EXPECT_THAT(id, IsOk());
    if (!id.ok()) return "";
    EXPECT_THAT(client_->StartContainer(*id), IsOk());
    return *id;
  }
  static std::string CpusAt(FakeRuntime& runtime, const std::string& id) {
    const auto container = runtime.FindContainer(id);
    return container ? container->resources.cpuset_cpus() : "none";
  }

  FakeRuntime kata_{{.store = {.first_id = 1'000'000}}};
  std::unique_ptr<CriClient> client_;
};

TEST_F(SeveralRuntimesTest, R04ContainersOfBothShareOneMachine) {
  StartAll();
  const std::string shared = RunIn("shared", "", 0);
  const std::string shared_there = RunIn("shared-there", "kata", 0);
  const std::string here = RunIn("here", "", 2);
  const std::string there = RunIn("there", "kata", 3);
  EXPECT_EQ(CpusAt(runtime_, here), "1-2");
  EXPECT_EQ(CpusAt(kata_, there), "3-5");
  EXPECT_EQ(CpusAt(runtime_, there), "none");
  // Each container was updated at its own runtime to leave these.
  EXPECT_TRUE(Eventually([&] { return CpusAt(runtime_, shared) == "0,6-7"; }));
  EXPECT_TRUE(Eventually([&] { return CpusAt(kata_, shared_there) == "0,6-7"; }));
  EXPECT_THAT(client_->StopContainer(there), IsOk());
  EXPECT_TRUE(Eventually([&] { return CpusAt(runtime_, shared) == "0,3-7"; }));
}

TEST_F(SeveralRuntimesTest, ARuntimeThatIsAwayAtOurStartHoldsUpNothing) {
  StartRuntime();
  Daemon();
  client_ = std::make_unique<CriClient>(Relayed());
  const std::string here = RunIn("here", "", 2);
  EXPECT_EQ(CpusAt(runtime_, here), "1-2");
  EXPECT_THAT(Create("there", "kata", 1), HasCode(StatusCode::kUnavailable));
  StartKata();
  ASSERT_TRUE(Eventually([this] { return ListedAll(); }));
  EXPECT_EQ(CpusAt(kata_, RunIn("there-2", "kata", 1)), "3");
  EXPECT_EQ(CpusAt(runtime_, here), "1-2");
}

TEST_F(SeveralRuntimesTest, WhatAnotherRuntimeHasKeepsItsCpusWhileThatIsAway) {
  StartAll();
  const std::string there = RunIn("there", "kata", 2);
  kata_.Stop();
  const std::string here = RunIn("here", "", 2);
  EXPECT_EQ(CpusAt(runtime_, here), "3-4") << "1-2 are those of the one that cannot be asked";
  ASSERT_TRUE(Logged("lost the runtime at"));
  StartKata();
  ASSERT_TRUE(Eventually([this] { return ListedAll(); }));
  EXPECT_EQ(CpusAt(kata_, there), "1-2");
  EXPECT_EQ(CpusAt(kata_, RunIn("there-2", "kata", 1)), "5");
  EXPECT_THAT(kata_.Calls("UpdateContainerResources"), testing::IsEmpty()) << "nothing moved";
  EXPECT_THAT(runtime_.Calls("UpdateContainerResources"), testing::IsEmpty());
}

TEST_F(SeveralRuntimesTest, AStartThatWaitsIsNotRefusedWhenAnotherRuntimeComesBack) {
  StartAll();
  RunIn("shared", "", 0);
  runtime_.Script("UpdateContainerResources", {.hold = true});
  const auto here = Ok(Create("here", "", 2));
  ASSERT_TRUE(runtime_.WaitForHeld("UpdateContainerResources", 1));
  cri::StartContainerRequest request;
  request.set_container_id(here);
  const auto start = client_->Start("StartContainer", request);
  kata_.Stop();
  ASSERT_TRUE(Logged("lost the runtime at"));
  StartKata();
  ASSERT_TRUE(kata_.WaitForCalls("ListContainers", 2));
  runtime_.Release("UpdateContainerResources");
  const auto result = start->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok()) << result->status.error_message();
}

TEST_F(SeveralRuntimesTest, OurRestartMovesNothingAtEither) {
  StartAll();
  const std::string here = RunIn("here", "", 2);
  const std::string there = RunIn("there", "kata", 2);
  daemon_.reset();
  Daemon();
  client_ = std::make_unique<CriClient>(Relayed());
  EXPECT_EQ(CpusAt(runtime_, RunIn("more", "", 1)), "5");
  EXPECT_EQ(CpusAt(runtime_, here), "1-2");
  EXPECT_EQ(CpusAt(kata_, there), "3-4");
  EXPECT_THAT(kata_.Calls("UpdateContainerResources"), testing::IsEmpty());
}

TEST_F(SeveralRuntimesTest, TheFirstListAfterOurRestartWaitsForAllThatAreThere) {
  StartAll();
  RunIn("here", "", 2);
  const std::string there = RunIn("there", "kata", 2);
  daemon_.reset();
  kata_.Script("ListPodSandbox", {.hold = true});
  const auto begin = std::chrono::steady_clock::now();
  Daemon();
  client_ = std::make_unique<CriClient>(Relayed());
  ASSERT_TRUE(kata_.WaitForHeld("ListPodSandbox", 1));
  const auto pod = MakeGuaranteedPod("more");
  const std::string pod_id = Ok(client_->RunPod(pod));
  const auto creation = client_->Start(
      "CreateContainer", CreateRequest(pod_id, pod, MakeGuaranteedContainer("more", 2)));
  const bool waits = !creation->Wait(milliseconds(200)).has_value();
  // The first list waits for a second; a busy machine may have taken that long until here.
  const bool in_time = std::chrono::steady_clock::now() - begin < seconds(1);
  EXPECT_TRUE(waits || !in_time) << "it is not known yet what the runtime kata has";
  kata_.Release("ListPodSandbox");
  const auto result = creation->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok()) << result->status.error_message();
  const auto created = runtime_.Calls("CreateContainer");
  cri::CreateContainerRequest forwarded;
  ASSERT_TRUE(forwarded.ParseFromString(created.back().messages.at(0)));
  EXPECT_EQ(forwarded.config().linux().resources().cpuset_cpus(), "5-6");
  EXPECT_EQ(CpusAt(kata_, there), "3-4");
  EXPECT_THAT(kata_.Calls("UpdateContainerResources"), testing::IsEmpty());
}

TEST_F(SeveralRuntimesTest, WhatARuntimeHasKeepsItsCpusWhereThatIsAwayAtOurRestart) {
  StartAll();
  const std::string here = RunIn("here", "", 2);
  const std::string there = RunIn("there", "kata", 2);
  // Terminated and not killed: a killed daemon may lack notes of its last milliseconds.
  ASSERT_TRUE(daemon_->Terminate().ok());
  kata_.Stop();
  Daemon();
  client_ = std::make_unique<CriClient>(Relayed());
  const std::string more = RunIn("more", "", 2);
  EXPECT_EQ(CpusAt(runtime_, more), "5-6");
  EXPECT_THAT(Create("too-many", "", 2), testing::Not(IsOk()))
      << "one CPU is free, beside the reserved one";
  StartKata();
  ASSERT_TRUE(Eventually([this] { return ListedAll(); }));
  EXPECT_EQ(CpusAt(runtime_, here), "1-2");
  EXPECT_EQ(CpusAt(kata_, there), "3-4");
  EXPECT_THAT(client_->StopContainer(there), IsOk());
  EXPECT_EQ(CpusAt(kata_, RunIn("there-2", "kata", 2)), "3-4");
  EXPECT_THAT(runtime_.Calls("UpdateContainerResources"), testing::IsEmpty()) << "nothing moved";
}

// The runtime takes connections and calls, and answers none.
TEST_F(SeveralRuntimesTest, C12ARuntimeThatHangsAtOurStartHoldsUpNothing) {
  StartRuntime();
  StartKata();
  HangKata();
  Daemon();
  client_ = std::make_unique<CriClient>(Relayed());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(CpusAt(runtime_, RunIn("here", "", 2)), "1-2");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10))
      << "the first list waits a second for it, and not ten";
  EXPECT_EQ(CpusAt(runtime_, RunIn("more", "", 1)), "3");
  const auto list = client_->Start("ListContainers", cri::ListContainersRequest(),
                                   {.timeout = milliseconds(8'000)});
  const auto result = list->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(result->status.error_message(), testing::HasSubstr("runtime kata: no answer within"));
}

TEST_F(SeveralRuntimesTest, C12ARuntimeThatHangsLaterHoldsUpNothing) {
  StartAll();
  const std::string there = RunIn("there", "kata", 2);
  HangKata();
  const auto begin = std::chrono::steady_clock::now();
  // Everything is listed before the refusal.
  EXPECT_EQ(CpusAt(runtime_, RunIn("here", "", 4)), "3-6");
  EXPECT_THAT(Create("too-many", "", 2), HasCode(StatusCode::kResourceExhausted));
  EXPECT_THAT(Create("too-many-2", "", 2), HasCode(StatusCode::kResourceExhausted));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  for (const char* const method : kHung)
    kata_.Script(method, {});
  for (const char* const method : kHung)
    kata_.Release(method);
  ASSERT_TRUE(Eventually([this] { return ListedAll(); }));
  EXPECT_EQ(CpusAt(kata_, there), "1-2");
  EXPECT_THAT(client_->StopContainer(there), IsOk());
  EXPECT_EQ(CpusAt(kata_, RunIn("there-2", "kata", 2)), "1-2");
}

TEST_F(SeveralRuntimesTest, B5WhoHadAnIdBeforeOurRestartKeepsIt) {
  StartAll();
  const auto pod = MakeGuaranteedPod("there");
  const std::string pod_id = Ok(client_->RunPod(pod, "kata"));
  const std::string there =
      Ok(client_->CreateContainer(pod_id, pod, MakeGuaranteedContainer("there", 2)));
  ASSERT_THAT(client_->StartContainer(there), IsOk());
  ASSERT_TRUE(daemon_->Terminate().ok());
  // The default runtime, which is asked first, reports that it has both.
  cri::ListPodSandboxResponse pods;
  pods.add_items()->set_id(pod_id);
  runtime_.Script("ListPodSandbox", {.reply = {{pods.SerializeAsString()}}});
  cri::ListContainersResponse containers;
  containers.add_containers()->set_id(there);
  containers.mutable_containers(0)->set_pod_sandbox_id(pod_id);
  containers.mutable_containers(0)->set_state(cri::CONTAINER_EXITED);
  runtime_.Script("ListContainers", {.reply = {{containers.SerializeAsString()}}});
  Daemon();
  client_ = std::make_unique<CriClient>(Relayed());
  EXPECT_EQ(CpusAt(runtime_, RunIn("here", "", 2)), "3-4") << "1-2 are in use";
  EXPECT_TRUE(Logged("runtimes kata and default have the same pod sandbox"));
  EXPECT_EQ(CpusAt(kata_, there), "1-2");
  EXPECT_THAT(client_->StopContainer(there), IsOk());
  EXPECT_THAT(kata_.Calls("StopContainer"), testing::SizeIs(1));
  EXPECT_THAT(runtime_.Calls("StopContainer"), testing::IsEmpty());
}

// Images of two runtimes that write the ids differently, as containerd (the default one here) and
// CRI-O do, as a kubelet that collects unused images sees them.

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
