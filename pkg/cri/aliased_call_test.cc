// SPDX-License-Identifier: Apache-2.0
// Clients name aliases of handlers, and the runtime never gets one.
#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pkg/cri/backend_router.h"
#include "pkg/cri/handler_aliases.h"
#include "pkg/cri/relay_fixture.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/cri_client/specs.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/grpc_framing.h"
#include "test/support/hostile/raw_client.h"
#include "test/support/raw_http2/raw_http2.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::CriClient;
using test::FakeRuntime;
using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::UnorderedElementsAre;
namespace cri = ::runtime::v1;

class AliasedCallTest : public RelayTest {
 protected:
  AliasedCallTest() { EXPECT_THAT(runtime_.Start(Path("runtime.sock")), IsOk()); }
  ~AliasedCallTest() override {
    client_.reset();
    StopRelay();
    thread_.Do([this] {
      router_.reset();
      backends_.reset();
      aliases_.reset();
    });
  }

  // Serves one runtime.
  void Serve() {
    StartRelay({.runtime_socket = Path("runtime.sock"), .image_socket = Path("runtime.sock")});
    thread_.Do([this] {
      aliases_ = std::make_unique<HandlerAliases>(
          HandlerAliases::Table{{"pinned", "runc"}, {"quiet", ""}});
      relay_->SetAliases(aliases_.get());
    });
    client_ = std::make_unique<CriClient>(RelaySocket());
  }
  // Serves two runtimes: the second one has the alias "there" of its default handler.
  void ServeTwo() {
    ASSERT_THAT(second_.Start(Path("second.sock")), IsOk());
    StartRelay({.runtime_socket = Path("runtime.sock"), .image_socket = Path("runtime.sock")});
    thread_.Do([this] {
      aliases_ = std::make_unique<HandlerAliases>(
          HandlerAliases::Table{{"pinned", "runc"}, {"there", ""}});
      backends_ = std::make_unique<Backends>(
          std::vector<Backends::Backend>{
              {.name = "default", .socket = Path("runtime.sock")},
              {.name = "other", .socket = Path("second.sock"), .handlers = {"there"}}},
          aliases_.get());
      router_ = std::make_unique<BackendRouter>(thread_.loop(), thread_.flushes(), *backends_);
      relay_->SetAliases(aliases_.get());
      relay_->SetRouter(router_.get());
    });
    client_ = std::make_unique<CriClient>(RelaySocket());
  }

  std::string RunPod(const std::string& name, const std::string& handler) {
    const auto pod = client_->RunPod(test::MakeBestEffortPod(name), handler);
    EXPECT_THAT(pod, IsOk());
    return pod.value_or("");
  }
  cri::PodSandboxStatusResponse StatusOf(const std::string& pod) {
    cri::PodSandboxStatusRequest request;
    request.set_pod_sandbox_id(pod);
    request.set_verbose(true);
    cri::PodSandboxStatusResponse reply;
    EXPECT_TRUE(client_->Unary("PodSandboxStatus", request, &reply).ok());
    return reply;
  }
  std::vector<std::string> ListedHandlers(const std::string& id = "") {
    cri::ListPodSandboxRequest request;
    if (!id.empty()) request.mutable_filter()->set_id(id);
    cri::ListPodSandboxResponse list;
    EXPECT_TRUE(client_->Unary("ListPodSandbox", request, &list).ok());
    std::vector<std::string> handlers;
    for (const auto& pod : list.items())
      handlers.push_back(pod.runtime_handler());
    return handlers;
  }
  std::vector<std::string> ToldHandlers() {
    cri::StatusResponse status;
    EXPECT_TRUE(client_->Unary("Status", cri::StatusRequest(), &status).ok());
    std::vector<std::string> names;
    for (const auto& handler : status.runtime_handlers())
      names.push_back(handler.name());
    return names;
  }
  static std::string HandlerAt(FakeRuntime& runtime, const std::string& pod) {
    return runtime.WithStore(
        [&pod](test::CriStore& store) { return store.sandboxes().at(pod).runtime_handler; });
  }
  static void TellHandlers(FakeRuntime& runtime, const std::vector<std::string>& names) {
    cri::StatusResponse reply;
    for (const std::string& name : names)
      reply.add_runtime_handlers()->set_name(name);
    for (const char* type : {"RuntimeReady", "NetworkReady"}) {
      auto& condition = *reply.mutable_status()->add_conditions();
      condition.set_type(type);
      condition.set_status(true);
    }
    runtime.Script("Status", {.reply = {{reply.SerializeAsString()}}});
  }
  size_t KnownSandboxes() {
    return thread_.Do([this] { return aliases_->sandboxes(); });
  }

  FakeRuntime runtime_;
  FakeRuntime second_{{.store = {.first_id = 1'000'000}}};
  std::unique_ptr<HandlerAliases> aliases_;
  std::unique_ptr<Backends> backends_;
  std::unique_ptr<BackendRouter> router_;
  std::unique_ptr<CriClient> client_;
};

TEST_F(AliasedCallTest, EachSideSeesItsOwnHandlers) {
  Serve();
  const std::string pinned = RunPod("a", "pinned");
  const std::string plain = RunPod("b", "runc");
  const std::string quiet = RunPod("c", "quiet");
  EXPECT_EQ(HandlerAt(runtime_, pinned), "runc");
  EXPECT_EQ(HandlerAt(runtime_, quiet), "");
  EXPECT_THAT(ListedHandlers(), UnorderedElementsAre("pinned", "runc", "quiet"));
  EXPECT_THAT(ListedHandlers(pinned), ElementsAre("pinned"));
  const cri::PodSandboxStatusResponse status = StatusOf(pinned);
  EXPECT_EQ(status.status().runtime_handler(), "pinned");
  EXPECT_THAT(status.info().at("info"), HasSubstr("\"runtimeHandler\":\"pinned\""));
  EXPECT_EQ(StatusOf(plain).status().runtime_handler(), "runc");
}

TEST_F(AliasedCallTest, AllOtherBytesOfTheRequestStay) {
  Serve();
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = test::MakeBestEffortPod("a");
  request.set_runtime_handler("pinned");
  const std::string unknown("\x82\x7d\x03new", 6);
  EXPECT_TRUE(
      client_->Call(client_->PathOf("RunPodSandbox"), {request.SerializeAsString() + unknown})
          .status.ok());
  request.set_runtime_handler("runc");
  const auto calls = runtime_.Calls("RunPodSandbox");
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_THAT(calls[0].messages, ElementsAre(request.SerializeAsString() + unknown));
}

TEST_F(AliasedCallTest, StatusTellsTheAliases) {
  Serve();
  TellHandlers(runtime_, {"", "runc"});
  EXPECT_THAT(ToldHandlers(), ElementsAre("", "runc", "pinned", "quiet"));
}

TEST_F(AliasedCallTest, EventsAndStreamsHaveTheAlias) {
  Serve();
  const auto events = client_->Start("GetContainerEvents", cri::GetEventsRequest());
  ASSERT_TRUE(runtime_.WaitForCalls("GetContainerEvents", 1));
  const std::string pod = RunPod("a", "pinned");
  cri::ContainerEventResponse event;
  event.set_container_id(pod);
  event.mutable_pod_sandbox_status()->set_id(pod);
  event.mutable_pod_sandbox_status()->set_runtime_handler("runc");
  runtime_.Script("GetContainerEvents", {.reply = {{event.SerializeAsString(), ""}}});
  const auto replayed = client_->Call(client_->PathOf("GetContainerEvents"), {""});
  ASSERT_THAT(replayed.messages, SizeIs(2));
  ASSERT_TRUE(event.ParseFromString(replayed.messages[0]));
  EXPECT_EQ(event.pod_sandbox_status().runtime_handler(), "pinned");
  EXPECT_EQ(replayed.messages[1], "");

  cri::StreamPodSandboxesResponse piece;
  auto& listed = *piece.add_pod_sandboxes();
  listed.set_id(pod);
  listed.set_runtime_handler("runc");
  runtime_.Script("StreamPodSandboxes", {.reply = {{piece.SerializeAsString()}}});
  const auto streamed = client_->Call(client_->PathOf("StreamPodSandboxes"), {""});
  ASSERT_THAT(streamed.messages, SizeIs(1));
  ASSERT_TRUE(piece.ParseFromString(streamed.messages[0]));
  EXPECT_EQ(piece.pod_sandboxes(0).runtime_handler(), "pinned");
}

TEST_F(AliasedCallTest, ImagesAreAskedForByTheRuntimesHandler) {
  Serve();
  cri::PullImageRequest pull;
  pull.mutable_image()->set_image("busybox");
  pull.mutable_image()->set_runtime_handler("pinned");
  cri::PullImageResponse pulled;
  EXPECT_TRUE(client_->Unary("PullImage", pull, &pulled).ok());
  const auto calls = runtime_.Calls("PullImage");
  ASSERT_THAT(calls, SizeIs(1));
  ASSERT_TRUE(pull.ParseFromString(calls[0].messages[0]));
  EXPECT_EQ(pull.image().runtime_handler(), "runc");
}

TEST_F(AliasedCallTest, RemovedSandboxesAreForgotten) {
  Serve();
  const std::string removed = RunPod("a", "pinned");
  const std::string vanishing = RunPod("b", "pinned");
  const std::string staying = RunPod("c", "pinned");
  EXPECT_THAT(client_->RemovePod(removed), IsOk());
  EXPECT_EQ(KnownSandboxes(), 2U);
  runtime_.WithStore([&](test::CriStore& store) {
    cri::RemovePodSandboxRequest request;
    request.set_pod_sandbox_id(vanishing);
    cri::RemovePodSandboxResponse reply;
    EXPECT_TRUE(store.RemovePodSandbox(request, &reply).ok());
  });
  EXPECT_THAT(ListedHandlers(staying), ElementsAre("pinned"));
  EXPECT_EQ(KnownSandboxes(), 2U) << "by a filter nothing is missing";
  EXPECT_THAT(ListedHandlers(), ElementsAre("pinned"));
  EXPECT_EQ(KnownSandboxes(), 1U);
}

TEST_F(AliasedCallTest, FailedCallsTeachNothing) {
  Serve();
  runtime_.Script("RunPodSandbox",
                  {.times = 1, .error = grpc::Status(grpc::StatusCode::UNKNOWN, "no runc")});
  EXPECT_FALSE(client_->RunPod(test::MakeBestEffortPod("a"), "pinned").ok());
  EXPECT_EQ(KnownSandboxes(), 0U);
  const std::string pod = RunPod("a", "pinned");
  runtime_.Script("RemovePodSandbox",
                  {.times = 1, .error = grpc::Status(grpc::StatusCode::UNKNOWN, "busy")});
  EXPECT_FALSE(client_->RemovePod(pod).ok());
  EXPECT_EQ(StatusOf(pod).status().runtime_handler(), "pinned");
  EXPECT_EQ(client_->Call(client_->PathOf("PodSandboxStatus"), {"\x0a\x01x"}).status.error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(AliasedCallTest, LongListsArriveWholeAtASlowClient) {
  Serve();
  const std::string pod = RunPod("a", "pinned");
  cri::ListPodSandboxResponse list;
  for (int i = 0; i < 20'000; ++i) {
    auto& item = *list.add_items();
    item.set_id(i % 100 == 0 ? pod : std::to_string(i));
    item.set_runtime_handler("runc");
    (*item.mutable_annotations())["a"] = std::string(100, 'x');
  }
  const std::string reply = list.SerializeAsString();
  runtime_.Script("ListPodSandbox", {.reply = {{reply}}});
  for (int i = 0; i < list.items_size(); i += 100)
    list.mutable_items(i)->set_runtime_handler("pinned");
  for (int time = 0; time < 3; ++time) {
    const auto result = client_->Call(client_->PathOf("ListPodSandbox"), {"\x0a\x00x"});
    ASSERT_TRUE(result.status.ok()) << result.status.error_message();
    ASSERT_THAT(result.messages, SizeIs(1));
    EXPECT_TRUE(result.messages[0] == list.SerializeAsString()) << result.messages[0].size();
  }
  const auto slow = client_->Start(client_->PathOf("StreamPodSandboxes"), "", {.pause_after = 1});
  runtime_.Script("StreamPodSandboxes", {.reply = std::vector<std::string>(40, reply)});
  const auto held = client_->Start(client_->PathOf("StreamPodSandboxes"), "", {.pause_after = 1});
  ASSERT_TRUE(held->WaitForMessages(1, kPatience));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(thread_.Do([] { return h2::Memory::held(); }), size_t{16} << 20) << "of 120 MB";
  held->ResumeReading();
  const auto result = EndOf(*held);
  EXPECT_TRUE(result.status.ok());
  EXPECT_THAT(result.messages, SizeIs(40));
  slow->Cancel();
}

TEST_F(AliasedCallTest, RepliesThatWaitForAClientAreBounded) {
  Serve();
  RunPod("a", "pinned");
  cri::StreamPodSandboxesResponse piece;
  (*piece.add_pod_sandboxes()->mutable_annotations())["a"] = std::string(size_t{8} << 20, 'x');
  runtime_.Script("StreamPodSandboxes",
                  {.reply = std::vector<std::string>(4, piece.SerializeAsString())});
  std::vector<std::unique_ptr<test::PendingCall>> calls;
  calls.reserve(12);
  for (int i = 0; i < 12; ++i)
    calls.push_back(client_->Start(client_->PathOf("StreamPodSandboxes"), "", {.pause_after = 1}));
  const auto refused = [](const std::unique_ptr<test::PendingCall>& call) {
    const auto result = call->Wait(std::chrono::milliseconds(0));
    return result && result->status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  };
  EXPECT_TRUE(runtime_.WaitForCancelled("StreamPodSandboxes", 1));
  // The replies have 384 MB. Far below the limit at which their client is not read any more.
  EXPECT_LT(thread_.Do([] { return h2::Memory::held(); }), size_t{40} << 20);
  // A client that stopped reading after a message does not see the end.
  for (const auto& call : calls)
    call->ResumeReading();
  EXPECT_TRUE(Eventually([&](Relay&) { return std::ranges::any_of(calls, refused); }));
  // Ends the calls with their client.
  calls.clear();
  client_.reset();
  EXPECT_TRUE(Eventually([](Relay&) { return h2::Memory::held() < size_t{4} << 20; }));
}

// A whole message leaves at once, and the beginning of the next one in the same frame does not fit
// any more.
TEST_F(AliasedCallTest, AReplyIsEndedWithinAFrame) {
  runtime_.Stop();
  constexpr size_t kPiece = 16'384;
  const std::string kRunPod = "/runtime.v1.RuntimeService/RunPodSandbox";
  const std::string kEvents = "/runtime.v1.RuntimeService/GetContainerEvents";
  auto raw = test::RawRuntime::Start(
      Path("runtime.sock"),
      {.answer =
           [](uint32_t stream, const std::string&) {
             const std::string headers = test::Fields({{":status", "200"}});
             const std::string body =
                 test::Framed("") + test::Framed(std::string(200'000, 'x')).substr(0, 150'000);
             return test::Frame(1, 4, stream, headers) + test::Frame(0, 0, stream, body);
           },
       .greeting = test::Frame(4, 0, 0, "")});
  ASSERT_THAT(raw, IsOk());
  Serve();
  test::RawClient client(RelaySocket());
  ASSERT_TRUE(client.Start());
  // Incomplete requests take nearly all that a connection may hold.
  uint32_t stream = 1;
  for (const size_t size : {size_t{16} << 20, size_t{16} << 20, (size_t{4} << 20) - 50'000}) {
    ASSERT_TRUE(client.Send(test::RequestHeaders(stream, kRunPod)));
    const std::string body = test::Framed(std::string(size, 'x'));
    for (size_t at = 0; at + kPiece < body.size(); at += kPiece)
      ASSERT_TRUE(client.Send(test::Frame(0, 0, stream, body.substr(at, kPiece))));
    stream += 2;
  }
  ASSERT_TRUE(Eventually([](Relay&) { return h2::Memory::held() > size_t{35} << 20; }));
  ASSERT_TRUE(client.Send(test::Request(stream, kEvents, "")));
  const std::string ended = test::Frame(3, 0, stream, test::Number(11));
  EXPECT_THAT(client.ReadUntil(ended), HasSubstr(ended));
}

// Like the test in SlowPeersTest for bytes that pass unchanged.
TEST_F(AliasedCallTest, UnreadStreamsDoNotHoldOtherCalls) {
  Serve();
  RunPod("a", "pinned");
  cri::StreamPodSandboxesResponse piece;
  (*piece.add_pod_sandboxes()->mutable_annotations())["a"] = std::string(size_t{1} << 20, 'x');
  runtime_.Script("StreamPodSandboxes",
                  {.reply = std::vector<std::string>(8, piece.SerializeAsString())});
  cri::ListPodSandboxResponse list;
  (*list.add_items()->mutable_annotations())["a"] = std::string(size_t{2} << 20, 'x');
  runtime_.Script("ListPodSandbox", {.reply = {{list.SerializeAsString()}}});
  std::vector<std::unique_ptr<test::PendingCall>> unread;
  unread.reserve(12);
  for (int i = 0; i < 12; ++i)
    unread.push_back(client_->Start(client_->PathOf("StreamPodSandboxes"), "", {.pause_after = 1}));
  for (size_t i = 0; i < unread.size(); ++i)
    ASSERT_TRUE(unread[i]->WaitForMessages(1, kPatience)) << i;
  for (int i = 0; i < 5; ++i) {
    const auto other = client_->Start(client_->PathOf("ListPodSandbox"), "");
    const auto result = EndOf(*other);
    ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  }
  for (const auto& call : unread)
    call->ResumeReading();
  for (const auto& call : unread) {
    const auto result = EndOf(*call);
    EXPECT_TRUE(result.status.ok()) << result.status.error_message();
    EXPECT_THAT(result.messages, SizeIs(8));
  }
}

TEST_F(AliasedCallTest, AliasOfAnotherRuntimeLeadsThere) {
  ServeTwo();
  const std::string here = RunPod("a", "pinned");
  const std::string there = RunPod("b", "there");
  const std::string plain = RunPod("c", "");
  EXPECT_EQ(HandlerAt(runtime_, here), "runc");
  EXPECT_EQ(HandlerAt(second_, there), "");
  EXPECT_EQ(HandlerAt(runtime_, plain), "");
  EXPECT_THAT(ListedHandlers(), UnorderedElementsAre("pinned", "there", ""));
  EXPECT_THAT(ListedHandlers(there), ElementsAre("there"));
  EXPECT_EQ(StatusOf(there).status().runtime_handler(), "there");
  cri::PullImageRequest pull;
  pull.mutable_image()->set_image("busybox");
  pull.mutable_image()->set_runtime_handler("there");
  cri::PullImageResponse pulled;
  EXPECT_TRUE(client_->Unary("PullImage", pull, &pulled).ok());
  ASSERT_THAT(second_.Calls("PullImage"), SizeIs(1));
  ASSERT_TRUE(pull.ParseFromString(second_.Calls("PullImage")[0].messages[0]));
  EXPECT_EQ(pull.image().runtime_handler(), "");
  EXPECT_THAT(client_->RemovePod(there), IsOk());
  EXPECT_EQ(KnownSandboxes(), 1U);
}

TEST_F(AliasedCallTest, StatusOfTwoTellsAnAliasAsItsRuntimeDoes) {
  ServeTwo();
  cri::StatusResponse reply;
  reply.add_runtime_handlers()->mutable_features()->set_user_namespaces(true);
  second_.Script("Status", {.reply = {{reply.SerializeAsString()}}});
  TellHandlers(runtime_, {"", "runc"});
  cri::StatusResponse status;
  ASSERT_TRUE(client_->Unary("Status", cri::StatusRequest(), &status).ok());
  std::vector<std::string> names;
  for (const auto& handler : status.runtime_handlers()) {
    names.push_back(handler.name());
    EXPECT_EQ(handler.features().user_namespaces(), handler.name() == "there");
  }
  EXPECT_THAT(names, UnorderedElementsAre("", "runc", "pinned", "there"));
}

// Random lives of pods of all handlers: each side only sees its own handlers.
TEST_F(AliasedCallTest, RandomPodsKeepTheirHandlers) {
  ServeTwo();
  std::mt19937 random(11);  // NOLINT(cert-msc32-c,cert-msc51-cpp)
  const std::vector<std::string> handlers = {"", "runc", "pinned", "there"};
  std::map<std::string, std::string> named;
  for (int step = 0; step < 200; ++step) {
    if (named.empty() || random() % 3 != 0) {
      const std::string& handler = handlers[random() % handlers.size()];
      named[RunPod(fmt::format("pod{}", step), handler)] = handler;
    } else {
      const auto at = std::next(named.begin(), static_cast<int>(random() % named.size()));
      EXPECT_THAT(client_->RemovePod(at->first), IsOk());
      named.erase(at);
    }
    cri::ListPodSandboxResponse list;
    ASSERT_TRUE(client_->Unary("ListPodSandbox", cri::ListPodSandboxRequest(), &list).ok());
    std::map<std::string, std::string> listed;
    for (const auto& pod : list.items())
      listed[pod.id()] = pod.runtime_handler();
    ASSERT_EQ(listed, named) << step;
  }
  for (FakeRuntime* const runtime : {&runtime_, &second_}) {
    runtime->WithStore([](test::CriStore& store) {
      for (const auto& [id, sandbox] : store.sandboxes())
        EXPECT_THAT(sandbox.runtime_handler, testing::AnyOf("", "runc"));
    });
  }
  EXPECT_EQ(KnownSandboxes(), static_cast<size_t>(std::ranges::count_if(named, [](const auto& pod) {
              return pod.second == "pinned" || pod.second == "there";
            })));
}

}  // namespace
}  // namespace resmgr
