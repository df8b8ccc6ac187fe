// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtimes_watch.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/fan_out_call.h"
#include "pkg/cri/runtime_inspectors.h"
#include "pkg/cri/testing/several_runtimes_fixture.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

namespace cri = ::runtime::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using test::IsOk;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using State = RuntimeView::State;

class RuntimesWatchTest : public testing::Test {
 protected:
  RuntimesWatchTest() {
    EXPECT_TRUE(first_.Start(directory_.File("first.sock")).ok());
    EXPECT_TRUE(second_.Start(directory_.File("second.sock")).ok());
  }

  std::vector<RuntimeView> Described(RuntimesWatch& watch) {
    std::vector<RuntimeView> views;
    watch.Describe([&](std::vector<RuntimeView> described) {
      views = std::move(described);
      loop_.Stop();
    });
    loop_.Run();
    return views;
  }

  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  TempDir directory_;
  test::FakeRuntime first_;
  test::FakeRuntime second_;
  Backends backends_{
      {{.name = "default", .socket = directory_.File("first.sock")},
       {.name = "kata", .socket = directory_.File("second.sock"), .handlers = {"kata"}}}};
};

TEST_F(RuntimesWatchTest, TellsWhatEachIsAndHas) {
  backends_.owners().Add(IdOwners::Kind::kContainer, "a", 1);
  backends_.Count(1, true);
  backends_.Count(1, false);
  RuntimesWatch watch(loop_, flushes_, backends_, nullptr);
  const std::vector<RuntimeView> views = Described(watch);
  ASSERT_THAT(views, SizeIs(2));
  EXPECT_EQ(views[0].name, "default");
  EXPECT_EQ(views[0].state, State::kConnected);
  EXPECT_THAT(views[0].version, HasSubstr(" "));
  EXPECT_TRUE(views[0].since.has_value());
  EXPECT_EQ(views[1].handlers, std::vector<std::string>{"kata"});
  EXPECT_EQ(views[1].containers, 1U);
  EXPECT_EQ(views[1].pods, 0U);
  EXPECT_EQ(views[1].calls, 2U);
  EXPECT_EQ(views[1].errors, 1U);
}

TEST_F(RuntimesWatchTest, TellsOneThatGoesHangsAndComesBack) {
  RuntimesWatch watch(loop_, flushes_, backends_, nullptr);
  second_.Script("Version", {.hold = true});
  EXPECT_EQ(Described(watch)[1].state, State::kHanging);
  EXPECT_EQ(Described(watch)[0].state, State::kConnected);
  second_.Stop();
  const RuntimeView away = Described(watch)[1];
  EXPECT_EQ(away.state, State::kAway);
  EXPECT_FALSE(away.last_error.empty());
  second_.ClearScripts();
  ASSERT_TRUE(second_.Start(directory_.File("second.sock")).ok());
  EXPECT_EQ(Described(watch)[1].state, State::kConnected);
}

TEST_F(RuntimesWatchTest, TheOnlyOneIsAskedWhenPeopleWantToKnow) {
  RuntimesWatch watch(loop_, flushes_, backends_.all().front());
  EXPECT_THAT(first_.Calls("Version"), SizeIs(0));
  const std::vector<RuntimeView> views = Described(watch);
  ASSERT_THAT(views, SizeIs(1));
  EXPECT_EQ(views[0].state, State::kConnected);
  EXPECT_FALSE(views[0].since.has_value());
  EXPECT_EQ(views[0].pods, 0U);
  EXPECT_THAT(first_.Calls("Version"), SizeIs(1));
}

TEST_F(RuntimesWatchTest, TheOnlyOneTellsWhatItHas) {
  cri::ListPodSandboxResponse pods;
  for (const char* id : {"a", "b"})
    pods.add_items()->set_id(id);
  first_.Script("ListPodSandbox", {.reply = {{pods.SerializeAsString()}}});
  cri::ListContainersResponse containers;
  for (const char* id : {"c", "d", "e"})
    containers.add_containers()->set_id(id);
  first_.Script("ListContainers", {.reply = {{containers.SerializeAsString()}}});
  cri::StatusResponse status;
  status.add_runtime_handlers()->set_name("");
  status.add_runtime_handlers()->set_name("runc");
  first_.Script("Status", {.reply = {{status.SerializeAsString()}}});
  const HandlerAliases aliases(HandlerAliases::Table{{"pinned", "runc"}});
  RuntimesWatch watch(loop_, flushes_, backends_.all().front(), &aliases);
  const RuntimeView view = Described(watch).front();
  EXPECT_EQ(view.pods, 2U);
  EXPECT_EQ(view.containers, 3U);
  EXPECT_THAT(view.handlers, testing::ElementsAre("", "runc", "pinned"));
}

TEST_F(RuntimesWatchTest, TheOnlyOneThatHangsOrIsAwayHasNoCounts) {
  RuntimesWatch watch(loop_, flushes_, backends_.all().front());
  EXPECT_EQ(Described(watch).front().containers, 0U);
  first_.Script("ListContainers", {.hold = true});
  const auto begin = steady_clock::now();
  const RuntimeView hanging = Described(watch).front();
  EXPECT_LT(steady_clock::now() - begin, 10 * RuntimesWatch::kPatience);
  EXPECT_EQ(hanging.pods, 0U);
  EXPECT_FALSE(hanging.containers.has_value());
  EXPECT_FALSE(hanging.last_error.empty());
  first_.Stop();
  EXPECT_FALSE(Described(watch).front().pods.has_value());
}

TEST_F(RuntimesWatchTest, EndsWhileAQuestionIsOpen) {
  auto watch = std::make_unique<RuntimesWatch>(loop_, flushes_, backends_, nullptr);
  watch->Describe([](const std::vector<RuntimeView>&) { FAIL() << "it is gone"; });
  watch.reset();
  test::RunFor(loop_, milliseconds(50));
}

// A runtime that takes calls and does not answer: calls that concern it end in time with its name,
// and no others wait for it.
class HungRuntimeTest : public SeveralRuntimesTest {
 protected:
  // For the quickest of some calls: a wait would delay each, a busy machine delays some.
  static constexpr milliseconds kAtOnce{1'000};

  void HangSecond() {
    for (const char* const method :
         {"ListPodSandbox", "ListContainers", "ListContainerStats", "ListPodSandboxStats",
          "ListPodSandboxMetrics", "ListMetricDescriptors", "Status", "ImageStatus", "ListImages",
          "StreamContainers", "GetContainerEvents", "Version"})
      second_.Script(method, {.hold = true});
  }
  static steady_clock::duration Quickest(const std::function<void()>& call) {
    auto quickest = steady_clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      const auto begin = steady_clock::now();
      call();
      quickest = std::min(quickest, steady_clock::now() - begin);
    }
    return quickest;
  }
  struct Ended {
    grpc::Status status;
    steady_clock::duration after{};
  };
  Ended Ask(const std::string& method, milliseconds timeout) {
    const auto begin = steady_clock::now();
    const auto result =
        client_->Start(client_->PathOf(method), "", {.timeout = timeout})->Wait(seconds(60));
    EXPECT_TRUE(result.has_value()) << method;
    if (!result) return {};
    return {result->status, steady_clock::now() - begin};
  }
};

TEST_F(HungRuntimeTest, C12ListsFailBeforeTheClientsDeadline) {
  RunPod("here", "");
  HangSecond();
  for (const char* const method :
       {"ListPodSandbox", "ListContainers", "ListContainerStats", "ListPodSandboxStats",
        "ListPodSandboxMetrics", "ListImages", "StreamContainers"}) {
    const Ended ended = Ask(method, milliseconds(4'000));
    EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::UNAVAILABLE) << method;
    EXPECT_THAT(ended.status.error_message(), HasSubstr("runtime kata: no answer within"))
        << method;
  }
  const Ended status = Ask("Status", milliseconds(2'000));
  EXPECT_TRUE(status.status.ok()) << status.status.error_message();
}

TEST_F(HungRuntimeTest, C12ListsFailAfterSomeSeconds) {
  HangSecond();
  const Ended ended = Ask("ListContainers", milliseconds(120'000));
  EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ended.status.error_message(), "runtime kata: no answer within 10000 ms");
  EXPECT_LT(ended.after, seconds(30));
  EXPECT_TRUE(second_.WaitForCancelled("ListContainers", 1));
}

// An unknown id, as after a start.
TEST_F(HungRuntimeTest, C12UnknownIdOfAnotherRuntimeDoesNotWaitForIt) {
  const std::string here = RunPod("here", "");
  const std::string container = CreateContainer(here);
  HangSecond();
  EXPECT_LT(Quickest([&] {
              ForgetIds();
              EXPECT_THAT(client_->ContainerStatus(container), IsOk());
            }),
            kAtOnce);
  EXPECT_THAT(second_.Calls("ListContainers"), SizeIs(1)) << "it is asked once until it answers";
  // A container that no answering runtime has may belong to the hanging one.
  cri::ContainerStatusRequest request;
  request.set_container_id("none");
  const auto result =
      client_->Start("ContainerStatus", request, {.timeout = milliseconds(2'000)})->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(result->status.error_message(), HasSubstr("runtime kata"));
}

TEST_F(HungRuntimeTest, C12WhatIsKnownToHangIsNotWaitedFor) {
  HangSecond();
  thread_.Do([this] { backends_->NoteAnswer(1, false); });
  EXPECT_LT(Quickest([this] {
              const Ended image = Ask("ImageStatus", milliseconds(120'000));
              EXPECT_TRUE(image.status.ok()) << image.status.error_message();
            }),
            kAtOnce);
  EXPECT_LT(Quickest([this] {
              EXPECT_THAT(client_->ContainerStatus("none"),
                          test::Fails(StatusCode::kUnavailable, HasSubstr("runtime kata")));
            }),
            kAtOnce);
}

// A removal of a large image takes long, and one that is cancelled may have to begin again.
TEST_F(HungRuntimeTest, C12AChangeWaitsAsLongAsItsClientUnlessTheRuntimeHangs) {
  for (const char* const method : {"RemoveImage", "UpdateRuntimeConfig"}) {
    second_.Script(method, {.hold = true});
    EXPECT_EQ(Ask(method, milliseconds(1'000)).status.error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED)
        << method;
  }
  thread_.Do([this] { backends_->NoteAnswer(1, false); });
  for (const char* const method : {"RemoveImage", "UpdateRuntimeConfig"}) {
    const Ended ended = Ask(method, milliseconds(120'000));
    EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::UNAVAILABLE) << method;
    EXPECT_EQ(ended.status.error_message(), "runtime kata: it does not answer") << method;
    EXPECT_LT(ended.after, FanOutCall::kPatience) << method;
  }
}

// The watch asks every five seconds, and at once if an answer is late.
TEST_F(HungRuntimeTest, C12ASilentRuntimeIsKnownToHangAfterASecond) {
  std::unique_ptr<RuntimesWatch> watch;
  thread_.Do([&] {
    watch = std::make_unique<RuntimesWatch>(thread_.loop(), thread_.flushes(), *backends_, nullptr);
  });
  ASSERT_TRUE(second_.WaitForCalls("Version", 1));
  HangSecond();
  const Ended image = Ask("ImageStatus", milliseconds(120'000));
  EXPECT_TRUE(image.status.ok()) << image.status.error_message();
  EXPECT_LT(image.after, FanOutCall::kPatience) << "as long as without the watch";
  EXPECT_LT(Quickest([this] {
              const Ended next = Ask("ImageStatus", milliseconds(120'000));
              EXPECT_TRUE(next.status.ok()) << next.status.error_message();
            }),
            kAtOnce);
  thread_.Do([&] { watch.reset(); });
  // The watch is gone, so no question follows.
  thread_.Do([this] { backends_->NoteSilence(1); });
}

TEST_F(HungRuntimeTest, C12EventsOfTheOthersGoOn) {
  const std::string here = RunPod("here", "");
  HangSecond();
  const auto events = client_->Start(client_->PathOf("GetContainerEvents"), "");
  ASSERT_TRUE(first_.WaitForCalls("GetContainerEvents", 1));
  CreateContainer(here);
  EXPECT_TRUE(events->WaitForMessages(1, kPatience));
  events->Cancel();
}

class RuntimeInspectorsTest : public SeveralRuntimesTest {
 protected:
  RuntimeInspectorsTest() {
    thread_.Do([this] {
      inspectors_ =
          std::make_unique<RuntimeInspectors>(thread_.loop(), thread_.flushes(), *backends_);
    });
  }
  ~RuntimeInspectorsTest() override {
    thread_.Do([this] { inspectors_.reset(); });
  }
  // Asks on the loop's thread, and waits for the answer.
  template <typename Result, typename Ask>
  Result Answer(Ask ask) {
    auto answered = std::make_shared<std::promise<Result>>();
    auto result = answered->get_future();
    thread_.Do([&] { ask([answered](Result value) { answered->set_value(std::move(value)); }); });
    return result.get();
  }

  std::unique_ptr<RuntimeInspectors> inspectors_;
};

using Everything = StatusOr<RuntimeAccess::Everything>;

TEST_F(RuntimeInspectorsTest, AskTheRuntimeThatHasIt) {
  const std::string there = RunPod("there", "kata");
  const ContainerId container(CreateContainer(there));
  const auto inspect = [&](auto done) { inspectors_->InspectContainer(container, done); };
  ASSERT_TRUE(Answer<StatusOr<ContainerFacts>>(inspect).ok());
  EXPECT_THAT(first_.Calls("ContainerStatus"), IsEmpty());
  ForgetIds();
  EXPECT_TRUE(Answer<StatusOr<ContainerFacts>>(inspect).ok());
  EXPECT_THAT(first_.Calls("ContainerStatus"), SizeIs(1)) << "one after the other";
  EXPECT_TRUE(Answer<StatusOr<SandboxFacts>>([&](auto done) {
                inspectors_->InspectSandbox(PodSandboxId(there), done);
              }).ok());
  const auto missing = Answer<StatusOr<ContainerFacts>>(
      [&](auto done) { inspectors_->InspectContainer(ContainerId("none"), done); });
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(Answer<Status>([&](auto done) {
                inspectors_->StopContainer(container, std::chrono::seconds(1), done);
              }).ok());
}

// A new container waits for what its runtime tells of its image, and for no other runtime.
TEST_F(RuntimeInspectorsTest, AskTheRuntimeOfThePodForItsImage) {
  const PodSandboxId there(RunPod("there", "kata"));
  first_.Script("ImageStatus", {.error = grpc::Status(grpc::INTERNAL, "the disk")});
  cri::ImageStatusResponse reply;
  reply.mutable_image()->add_repo_digests("web@sha256:1");
  second_.Script("ImageStatus", {.reply = {{reply.SerializeAsString()}}});
  const auto image = Answer<StatusOr<ImageFacts>>(
      [&](auto done) { inspectors_->InspectImage(there, "web:1", done); });
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  EXPECT_EQ(image->digest, "web@sha256:1");
  EXPECT_THAT(first_.Calls("ImageStatus"), IsEmpty());
}

// An id may be unknown, as after a start.
TEST_F(RuntimeInspectorsTest, AskTheOthersWhereOneIsAway) {
  const ContainerId container(CreateContainer(RunPod("there", "kata")));
  ForgetIds();
  first_.Stop();
  const auto inspect = [this](const ContainerId& id) {
    return Answer<StatusOr<ContainerFacts>>(
               [&](auto done) { inspectors_->InspectContainer(id, done); })
        .status();
  };
  EXPECT_TRUE(inspect(container).ok());
  EXPECT_EQ(inspect(ContainerId("none")).code(), StatusCode::kUnavailable)
      << "the one that is away may have it";
}

// Hosted plugins register once the version is known.
TEST_F(RuntimeInspectorsTest, TellTheVersionOfTheFirstThatAnswers) {
  const auto version = [this] {
    return Answer<StatusOr<RuntimeAccess::Version>>(
               [&](auto done) { inspectors_->AskVersion(done); })
        .status();
  };
  EXPECT_TRUE(version().ok());
  EXPECT_THAT(second_.Calls("Version"), IsEmpty());
  first_.Script("Version", {.hold = true});
  thread_.Do([this] { backends_->NoteAnswer(0, false); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(version().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, RuntimeConnection::kCallTimeout)
      << "the one that hangs was waited for";
  thread_.Do([this] { backends_->NoteAnswer(0, true); });
  first_.Stop();
  EXPECT_TRUE(version().ok());
}

TEST_F(RuntimeInspectorsTest, TellWhatAllHaveThatAreThere) {
  RunPod("here", "");
  RunPod("there", "kata");
  const auto inspect = [&](auto done) { inspectors_->InspectAll(done); };
  EXPECT_THAT(Answer<Everything>(inspect)->sandboxes, SizeIs(2));
  second_.Stop();
  EXPECT_THAT(Answer<Everything>(inspect)->sandboxes, SizeIs(1));
  first_.Script("ListPodSandbox", {.times = 1, .error = grpc::Status(grpc::INTERNAL, "the disk")});
  EXPECT_THAT(Message(Answer<Everything>(inspect).status()), HasSubstr("runtime default: "));
  first_.Stop();
  EXPECT_EQ(Answer<Everything>(inspect).status().code(), StatusCode::kUnavailable);
}

TEST_F(RuntimeInspectorsTest, C12OneThatHangsIsOneThatIsAway) {
  RunPod("here", "");
  const std::string there = RunPod("there", "kata");
  const auto inspect = [&](auto done) { inspectors_->InspectAll(done); };
  ASSERT_THAT(Answer<Everything>(inspect)->sandboxes, SizeIs(2));
  second_.Script("ListPodSandbox", {.hold = true});
  const auto begin = std::chrono::steady_clock::now();
  const auto all = Answer<Everything>(inspect);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10))
      << "its own patience";
  ASSERT_TRUE(all.ok()) << Describe(all.status());
  EXPECT_THAT(all->sandboxes, SizeIs(1));
  EXPECT_THAT(all->unlisted, testing::ElementsAre(there)) << "which is not gone";
}

// The refusal of a runtime that is down comes at once, and says nothing about how fast others are.
TEST_F(RuntimeInspectorsTest, ASlowOneIsWaitedForWhereTheOtherIsDown) {
  (void)CreateContainer(RunPod("here", ""));
  second_.Stop();
  first_.Script("ContainerStatus", {.times = 1, .delay = std::chrono::milliseconds(1'500)});
  const auto all = Answer<Everything>([&](auto done) { inspectors_->InspectAll(done); });
  ASSERT_TRUE(all.ok()) << Describe(all.status());
  EXPECT_THAT(all->sandboxes, SizeIs(1));
  EXPECT_THAT(all->containers, SizeIs(1));
}

TEST_F(RuntimeInspectorsTest, B5WhatTwoHaveIsTheFirstOnes) {
  const std::string here = RunPod("here", "");
  ::runtime::v1::ListPodSandboxResponse list;
  list.add_items()->set_id(here);
  second_.Script("ListPodSandbox", {.reply = {{list.SerializeAsString()}}});
  second_.Script("PodSandboxStatus", {.error = grpc::Status(grpc::INTERNAL, "the shim hangs")});
  ForgetIds();
  const auto all = Answer<Everything>([&](auto done) { inspectors_->InspectAll(done); });
  ASSERT_TRUE(all.ok()) << Describe(all.status());
  EXPECT_THAT(all->sandboxes, SizeIs(1));
  EXPECT_EQ(thread_.Do([&] { return backends_->calls(1).refused_claims; }), 1U);
}

}  // namespace
}  // namespace resmgr
