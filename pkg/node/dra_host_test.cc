// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/dra_host.h"

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "pkg/api/dra.pb.h"
#include "pkg/api/node_claims.pb.h"
#include "pkg/api/plugin_registration.pb.h"
#include "pkg/dra/registration.h"
#include "pkg/dra/testing/fake_claims.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/node/dra_reports.h"
#include "pkg/node/host_claims.h"
#include "pkg/node/testing/fake_policy_host.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "pkg/topology/machine_source.h"
#include "test/support/machines/machines.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunFor;
using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
namespace fs = std::filesystem;
namespace api = k8s::io::kubelet::pkg::apis::dra::v1;

constexpr char kPrepareMethod[] = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources";
constexpr char kGetInfoMethod[] = "/pluginregistration.Registration/GetInfo";
const DraConfig kOn{.enable = true, .compatible = true};

// An HTTP/2 frame of the only stream, or of the connection (stream 0).
std::string RawFrame(char type, char flags, char stream, const std::string& payload) {
  std::string frame(9, '\0');
  frame[2] = static_cast<char>(payload.size());
  frame[3] = type;
  frame[4] = flags;
  frame[8] = stream;
  return frame + payload;
}

// All bytes of a client that calls this gRPC method with an empty message.
std::string StreamRequest(const std::string& path) {
  std::string fields;
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{":method", "POST"},
                                                        {":scheme", "http"},
                                                        {":path", path},
                                                        {":authority", "localhost"},
                                                        {"content-type", "application/grpc"},
                                                        {"te", "trailers"}}) {
    fields += std::string(1, '\0') + static_cast<char>(name.size()) + name;
    fields += static_cast<char>(value.size()) + value;
  }
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + RawFrame(4, 0, 0, "") + RawFrame(1, 4, 1, fields) +
         RawFrame(0, 1, 1, std::string(5, '\0'));
}

// Reserves a CPU for claim u-1; false if it is not granted.
bool HoldsOneCpu(test::TestNode& brain, const std::string& driver = "") {
  return brain
      .Reserve({.uid = "u-1",
                .namespace_name = "default",
                .name = "c",
                .parts = {{.device = "cpu-numa-0", .cpus = 1}},
                .driver = driver})
      .ok();
}

// Agent and kubelet are the test, on the loop of the host.
class DraHostTest : public testing::Test {
 protected:
  DraHostTest() {
    fs::create_directories(directory_.path() + "/var/lib/kubelet/plugins");
    fs::create_directories(directory_.path() + "/var/lib/kubelet/plugins_registry");
    auto agent =
        UnaryServer::Create(loop_, flushes_, agent_socket_,
                            {{"/cri_resmgr.v1.NodeClaims/GetClaim",
                              [this](const std::string&, const UnaryServer::Reply& reply) {
                                if (lacks_claims_) return reply(NotFound("no such claim"));
                                cri_resmgr::v1::GetClaimReply answer;
                                answer.set_claim(dra::test::ClaimObject(
                                    {.uid = "u-1", .namespace_name = "default", .name = "c"}, 2));
                                reply(answer.SerializeAsString());
                              }},
                             {"/cri_resmgr.v1.NodeClaims/ShowDevices",
                              [this](const std::string& message, const UnaryServer::Reply& reply) {
                                if (!refusal_.ok()) return reply(refusal_);
                                EXPECT_TRUE(shown_.emplace_back().ParseFromString(message));
                                cri_resmgr::v1::ShowDevicesReply answer;
                                answer.set_pool("worker-1");
                                reply(answer.SerializeAsString());
                              }}});
    EXPECT_TRUE(agent.ok());
    agent_ = *std::move(agent);
    StartHost();
  }
  void StartHost(StateStore* state = nullptr) { StartHostOn(machine_, state); }
  // The machine has to outlive the host.
  void StartHostOn(const Machine& machine, StateStore* state = nullptr) {
    host_.reset();
    host_.emplace(DraHost::Options{
        .loop = loop_,
        .flushes = flushes_,
        .machine = machine,
        .host = policy_host_,
        .brain = [this] { return brain_; },
        .state = state,
        .reports = &reports_,
        .agent_socket = agent_socket_,
        .host_root = directory_.path(),
        .count = [this](const dra::AnsweredCall& call) { prepared_ += call.prepare ? call.ok : 0; },
        .beat = beat_,
        .registration_patience = registration_patience_,
        .compare = milliseconds(5),
        .withdraw =
            [this](const std::string& path) {
              if (hangs_) hung_until_.wait();
              dra::WithdrawFromKubelet(path);
            }});
  }
  std::string OnHost(const std::string& path) const { return directory_.path() + path; }
  std::string Registry() const {
    return OnHost("/var/lib/kubelet/plugins_registry/dra.cpu-reg.sock");
  }
  // The kubelet sees the socket, and is answered.
  bool Registered() {
    if (!RunUntil(loop_, [this] { return fs::exists(Registry()); })) return false;
    bool answered = false;
    for (int tries = 0; tries < 100 && !answered; ++tries)
      answered = Call(Registry(), kGetInfoMethod, "").ok();
    return answered;
  }
  // The claim "held" has CPUs already.
  void HoldClaim() {
    holder_.Reserve({.uid = "held",
                     .namespace_name = "default",
                     .name = "c",
                     .parts = {{.request = "r", .device = "d", .node = 0, .cpus = 1}}},
                    [](const StatusOr<ClaimGrant>&) {});
  }
  StatusOr<std::string> Call(const std::string& socket, const std::string& method,
                             const std::string& message) {
    UnaryClient client(loop_, flushes_, socket);
    const Status connected = client.Connect([](const Status&) {});
    if (!connected.ok()) return connected;
    std::optional<StatusOr<std::string>> result;
    client.Call(method, message, std::chrono::seconds(30),
                [&result](StatusOr<std::string> reply) { result = std::move(reply); });
    EXPECT_TRUE(RunUntil(loop_, [&result] { return result.has_value(); }));
    return result.value_or(Internal("no answer"));
  }

  const TempDir directory_;
  const std::string agent_socket_ = directory_.File("agent.sock");
  const Machine machine_ = *LoadMachine("synthetic:numa:2 core:4 pu:1");
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  std::vector<cri_resmgr::v1::ShowDevicesRequest> shown_;
  std::unique_ptr<UnaryServer> agent_;
  AgentReports reports_{loop_, flushes_, agent_socket_};
  test::CrashingFileSystem files_{1};
  StateStore state_{files_, "state", "m", [](std::string_view) {}};
  dra::test::FakeHolder holder_{8};
  ClaimHolder* brain_ = &holder_;
  size_t prepared_ = 0;        // claims, as counted
  bool lacks_claims_ = false;  // the API server
  Status refusal_;             // of devices, by the agent
  milliseconds beat_{50};
  milliseconds registration_patience_{60'000};
  test::FakePolicyHost policy_host_;
  std::atomic<bool> hangs_ = false;
  std::promise<void> goes_on_;
  const std::shared_future<void> hung_until_ =
      goes_on_.get_future().share();  // until the test says so
  std::optional<DraHost> host_;
};

TEST_F(DraHostTest, ServesNothingUnlessTheConfigurationSaysSo) {
  host_->NoteConfiguration({});
  RunFor(loop_, milliseconds(100));
  EXPECT_TRUE(fs::is_empty(OnHost("/var/lib/kubelet/plugins_registry")));
  EXPECT_TRUE(fs::is_empty(OnHost("/var/lib/kubelet/plugins")));
  EXPECT_FALSE(fs::exists(OnHost("/var/run/cdi")));
  EXPECT_THAT(shown_, IsEmpty());
  EXPECT_THAT(host_->problems(), IsEmpty());
}

TEST_F(DraHostTest, AHeldClaimThatTheApiServerLacksIsAProblemAlsoWithTheDriverOff) {
  test::TestNode brain{test::S1Ht(), test::FirstFit};
  ASSERT_TRUE(HoldsOneCpu(brain));
  policy_host_.brain = &brain.manager();
  host_->NoteConfiguration({});
  RunFor(loop_, milliseconds(100));
  EXPECT_THAT(host_->problems(), IsEmpty());
  lacks_claims_ = true;
  EXPECT_TRUE(RunUntil(loop_, [this] { return host_->problems().size() == 1; }));
  EXPECT_EQ(host_->problems().at(0).next, "cri-resmgr-ctl release-claim u-1");
  lacks_claims_ = false;
  EXPECT_TRUE(RunUntil(loop_, [this] { return host_->problems().empty(); }));
  host_.reset();
  policy_host_.brain = nullptr;
}

TEST_F(DraHostTest, ClaimsOfAFormerDriverThatCannotBeReleasedAreAProblem) {
  test::TestNode brain{test::S1Ht(), test::FirstFit};
  ASSERT_TRUE(HoldsOneCpu(brain, "former.example.com"));
  policy_host_.brain = &brain.manager();
  host_->NoteConfiguration({.enable = true, .driver = "former.example.com"});
  EXPECT_TRUE(RunUntil(loop_, [this] { return host_->problems().empty(); }));
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  ASSERT_TRUE(RunUntil(loop_, [this] { return host_->problems().size() == 1; }));
  EXPECT_THAT(host_->problems().front().message,
              HasSubstr("was former.example.com before, and CPUs of 1 claim stay held"));
  host_.reset();
  policy_host_.brain = nullptr;
}

TEST_F(DraHostTest, D1TheKubeletFindsTheDriverAndItsClaims) {
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  pluginregistration::PluginInfo info;
  const auto told = Call(Registry(), kGetInfoMethod, "");
  ASSERT_TRUE(told.ok() && info.ParseFromString(*told)) << told.status();
  EXPECT_EQ(info.endpoint(), "/var/lib/kubelet/plugins/dra.cpu/dra.sock") << "as the host has it";
  api::NodePrepareResourcesRequest request;
  api::Claim& claim = *request.add_claims();
  claim.set_uid("u-1");
  claim.set_namespace_("default");
  claim.set_name("c");
  const auto reply = Call(OnHost(info.endpoint()), kPrepareMethod, request.SerializeAsString());
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(prepared_, 1U) << "it is counted";
  api::NodePrepareResourcesResponse response;
  ASSERT_TRUE(response.ParseFromString(*reply));
  EXPECT_EQ(response.claims().at("u-1").error(), "");
  EXPECT_TRUE(fs::exists(OnHost("/var/run/cdi/dra.k8s.io-cpu_claim-u-1.json")));
  EXPECT_THAT(host_->problems(), IsEmpty());
}

TEST_F(DraHostTest, OffAgainTheKubeletFindsNothing) {
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  ASSERT_TRUE(RunUntil(loop_, [this] { return !shown_.empty(); }));
  host_->NoteConfiguration(kOn);
  EXPECT_TRUE(fs::exists(Registry())) << "nothing has changed";
  host_->NoteConfiguration({});
  // The files of the two sockets go one after the other.
  EXPECT_TRUE(RunUntil(loop_, [this] {
    return !fs::exists(Registry()) &&
           !ConnectUnix(OnHost("/var/lib/kubelet/plugins/dra.cpu/dra.sock")).ok();
  }));
  ASSERT_TRUE(RunUntil(loop_, [this] { return !shown_.empty() && shown_.back().absent(); }));
  host_->NoteConfiguration(kOn);
  EXPECT_TRUE(RunUntil(loop_, [this] { return !shown_.back().absent(); }));
}

// The file of the former driver is still there then.
TEST_F(DraHostTest, AChangeDoesNotWaitForADiskThatHangs) {
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  hangs_ = true;
  host_->NoteConfiguration({.enable = true, .driver = "other.com"});
  host_->NoteConfiguration({});
  RunFor(loop_, milliseconds(50));
  EXPECT_TRUE(fs::exists(Registry()));
  host_->NoteConfiguration({.enable = true, .driver = "another.com"});
  hangs_ = false;
  goes_on_.set_value();
  const std::string next = OnHost("/var/lib/kubelet/plugins_registry/another.com-reg.sock");
  EXPECT_TRUE(RunUntil(loop_, [&] { return fs::exists(next); })) << "the last one counts";
  EXPECT_FALSE(fs::exists(Registry()));
}

// Calls in flight may go on for long, and the next daemon is there already.
TEST_F(DraHostTest, StopsServingBeforeItsEnd) {
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  host_->StopServing();
  EXPECT_FALSE(fs::exists(Registry()));
  EXPECT_FALSE(ConnectUnix(OnHost("/var/lib/kubelet/plugins/dra.cpu/dra.sock")).ok());
  host_->NoteConfiguration({});
  host_->NoteConfiguration(kOn);
  RunFor(loop_, milliseconds(100));
  EXPECT_FALSE(fs::exists(Registry()));
}

TEST_F(DraHostTest, TheEndLeavesNoSocket) {
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  host_.reset();
  EXPECT_FALSE(fs::exists(Registry()));
}

// Files of claims that ended while no daemon ran are removed.
TEST_F(DraHostTest, AStartPutsFilesInOrder) {
  fs::create_directories(OnHost("/var/run/cdi"));
  const std::string gone = OnHost("/var/run/cdi/dra.k8s.io-cpu_claim-gone.json");
  ASSERT_EQ(AtomicWriteFile(gone, "{}", 0644), OkStatus());
  HoldClaim();
  host_->NoteConfiguration(kOn);
  EXPECT_TRUE(RunUntil(loop_, [&] {
    return !fs::exists(gone) && fs::exists(OnHost("/var/run/cdi/dra.k8s.io-cpu_claim-held.json"));
  }));
}

TEST_F(DraHostTest, FilesThatTheDiskRefusesAreWrittenLater) {
  const std::string directory = OnHost("/var/run/cdi");
  fs::create_directories(OnHost("/var/run"));
  ASSERT_EQ(AtomicWriteFile(directory, "no directory", 0644), OkStatus());
  HoldClaim();
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  RunFor(loop_, milliseconds(100));
  fs::remove(directory);
  EXPECT_TRUE(
      RunUntil(loop_, [&] { return fs::exists(directory + "/dra.k8s.io-cpu_claim-held.json"); }));
}

TEST_F(DraHostTest, FilesFollowAChangeOfClaimsAtOnce) {
  beat_ = std::chrono::hours(1);
  StartHost();
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  const std::string file = OnHost("/var/run/cdi/dra.k8s.io-cpu_claim-held.json");
  HoldClaim();
  host_->claims_observer().OnClaims(HeldClaims());
  EXPECT_TRUE(RunUntil(loop_, [&file] { return fs::exists(file); }));
  holder_.Release("held", [](const Status&) {});
  host_->claims_observer().OnClaims(HeldClaims());
  EXPECT_TRUE(RunUntil(loop_, [&file] { return !fs::exists(file); }));
}

// A daemon that serves another driver, or none, than one that was killed removes the sockets that
// this one left.
class KilledDriverTest : public DraHostTest {
 protected:
  // As after a kill: the files of the sockets are there, and the state.
  void LeaveSockets() {
    StartHost(&state_);
    host_->NoteConfiguration(kOn);
    ASSERT_TRUE(Registered());
    host_.reset();
    fs::create_directories(fs::path(Endpoint()).parent_path());
    for (const std::string& path : {Registry(), Endpoint()})
      LeaveSocket(path);
    StartHost(&state_);
  }
  static void LeaveSocket(const std::string& path) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    ASSERT_LT(path.size(), sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  std::string Endpoint() const { return OnHost("/var/lib/kubelet/plugins/dra.cpu/dra.sock"); }
  bool IsLeft() const { return fs::exists(Registry()) || fs::exists(Endpoint()); }
  bool IsNoted() const {
    return state_.FindNote(StateStore::PodNote::kDriver, PodSandboxId("dra.cpu")).has_value();
  }
};

TEST_F(KilledDriverTest, IsWithdrawnByADaemonThatServesAnother) {
  LeaveSockets();
  host_->NoteConfiguration({.enable = true, .driver = "other.example.com"});
  EXPECT_TRUE(RunUntil(loop_, [this] {
    return fs::exists(OnHost("/var/lib/kubelet/plugins_registry/other.example.com-reg.sock"));
  }));
  EXPECT_FALSE(IsLeft());
  EXPECT_FALSE(IsNoted());
}

TEST_F(KilledDriverTest, IsWithdrawnByADaemonThatServesNone) {
  LeaveSockets();
  host_->NoteConfiguration({});
  EXPECT_TRUE(RunUntil(loop_, [this] { return !IsLeft() && !IsNoted(); }));
}

// Until the disk answers, no driver is served, and the next start looks again.
TEST_F(KilledDriverTest, IsSoughtAgainIfTheDiskHangs) {
  LeaveSockets();
  hangs_ = true;
  host_->NoteConfiguration({});
  RunFor(loop_, milliseconds(50));
  EXPECT_TRUE(IsLeft());
  EXPECT_TRUE(IsNoted());
  goes_on_.set_value();
  EXPECT_TRUE(RunUntil(loop_, [this] { return !IsLeft() && !IsNoted(); }));
}

TEST_F(KilledDriverTest, IsServedByADaemonThatServesTheSame) {
  LeaveSockets();
  host_->NoteConfiguration(kOn);
  // The file that was left is there before the new socket.
  ASSERT_TRUE(RunUntil(loop_, [this] { return ConnectUnix(Registry()).ok(); }));
  EXPECT_TRUE(Registered());
  EXPECT_TRUE(IsNoted());
}

// The held claims are not known then.
TEST_F(DraHostTest, AStartWithAnEmptyStateRemovesNoFiles) {
  fs::create_directories(OnHost("/var/run/cdi"));
  const std::string file = OnHost("/var/run/cdi/dra.k8s.io-cpu_claim-u-2.json");
  ASSERT_EQ(AtomicWriteFile(file, "{}", 0644), OkStatus());
  HoldClaim();
  StartHost(&state_);
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(RunUntil(
      loop_, [&] { return fs::exists(OnHost("/var/run/cdi/dra.k8s.io-cpu_claim-held.json")); }));
  EXPECT_TRUE(fs::exists(file));
}

// Containers of held claims may be started again.
TEST_F(DraHostTest, WithoutABrainFilesStay) {
  const std::string file = OnHost("/var/run/cdi/dra.k8s.io-cpu_claim-u-2.json");
  fs::create_directories(OnHost("/var/run/cdi"));
  ASSERT_EQ(AtomicWriteFile(file, "{}", 0644), OkStatus());
  brain_ = nullptr;
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  RunFor(loop_, milliseconds(100));
  EXPECT_TRUE(fs::exists(file));
  brain_ = &holder_;
  host_->NoteConfiguration(kOn);
  EXPECT_TRUE(RunUntil(loop_, [&] { return !fs::exists(file); }));
}

// The agent takes a driver that says nothing for gone.
TEST_F(DraHostTest, D17SaysAgainAndAgainThatItIsThere) {
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(RunUntil(loop_, [this] { return shown_.size() >= 3; }));
  EXPECT_EQ(shown_.back().driver(), "dra.cpu");
  EXPECT_THAT(shown_.back().devices(), SizeIs(0)) << "null grants nothing";
  EXPECT_GT(shown_.back().beat(), shown_.front().beat());
}

TEST_F(DraHostTest, D14ADeviceIsUnhealthyWhileAllOfItsCpusAreOffline) {
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  const auto kubelet = ConnectUnix(OnHost("/var/lib/kubelet/plugins/dra.cpu/dra.sock"));
  ASSERT_TRUE(kubelet.ok()) << kubelet.status();
  const std::string request = StreamRequest("/v1.DRAResourceHealth/NodeWatchResources");
  ASSERT_EQ(::send(kubelet->get(), request.data(), request.size(), 0), std::ssize(request));
  std::string got;
  const auto watch = loop_.Watch(kubelet->get(), EventLoop::kReadable, [&](int) {
    char block[4096];
    const ssize_t count = ::recv(kubelet->get(), block, sizeof block, 0);
    if (count > 0) got.append(block, static_cast<size_t>(count));
  });
  const auto told = [&got](std::string_view text) { return got.find(text) != std::string::npos; };
  EXPECT_TRUE(RunUntil(loop_, [&] { return told("worker-1") && told("cpudevnuma001"); }));
  host_->NoteOffline({4, 5, 6});
  host_->NoteOffline({0, 4, 5, 6, 7});
  EXPECT_TRUE(RunUntil(loop_, [&] { return told("all of its CPUs (4-7) are offline"); }));
  EXPECT_FALSE(told("(0-3) are offline"));
}

TEST_F(DraHostTest, ClaimsThatNobodyCanReleaseAreAProblem) {
  HoldClaim();
  host_->NoteConfiguration({});
  ASSERT_THAT(host_->problems(), SizeIs(1));
  EXPECT_EQ(host_->problems().front().kind, "plugin");
  EXPECT_THAT(host_->problems().front().message, HasSubstr("1 claim"));
  holder_.Release("held", [](const Status&) {});
  EXPECT_THAT(host_->problems(), IsEmpty());
}

TEST_F(DraHostTest, PlacesThatNoPoolHasRoomForAreAProblem) {
  const Machine many = test::MakeMachine({.packages = 2, .nodes = 5, .l3s = 7, .cores = 7});
  StartHostOn(many);
  host_->NoteConfiguration({.enable = true, .compatible = true, .devices = DraDevices::kL3});
  ASSERT_TRUE(Registered());
  ASSERT_THAT(host_->problems(), SizeIs(1));
  EXPECT_EQ(host_->problems().front().kind, "plugin");
  EXPECT_THAT(host_->problems().front().message, HasSubstr("of 6 further L3 caches"));
  EXPECT_EQ(host_->problems().front().next, "set dra.Devices to numa");
  host_->NoteConfiguration(kOn);
  EXPECT_TRUE(RunUntil(loop_, [this] { return host_->problems().empty(); }));
  host_.reset();
}

TEST_F(DraHostTest, WithoutAKubeletItIsAProblemAndTriedAgain) {
  fs::remove_all(OnHost("/var/lib/kubelet"));
  ASSERT_EQ(AtomicWriteFile(OnHost("/var/lib/kubelet"), "no directory", 0644), OkStatus());
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(RunUntil(loop_, [this] { return host_->problems().size() >= 2; }));
  EXPECT_EQ(host_->problems().front().kind, "socket");
  fs::remove(OnHost("/var/lib/kubelet"));
  EXPECT_TRUE(RunUntil(loop_, [this] { return host_->problems().empty(); }));
  EXPECT_TRUE(Registered());
}

// One with another root directory looks elsewhere.
TEST_F(DraHostTest, AKubeletThatDoesNotAskForTheDriverIsAProblem) {
  registration_patience_ = milliseconds(20);
  StartHost();
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(RunUntil(loop_, [this] { return !host_->problems().empty(); }));
  ASSERT_TRUE(RunUntil(loop_, [this] {
    return host_->problems().front().message.starts_with("no kubelet has asked for the driver");
  }));
  pluginregistration::RegistrationStatus status;
  status.set_plugin_registered(true);
  ASSERT_TRUE(Registered());
  ASSERT_TRUE(Call(Registry(), "/pluginregistration.Registration/NotifyRegistrationStatus",
                   status.SerializeAsString())
                  .ok());
  EXPECT_TRUE(host_->problems().empty());
}

TEST_F(DraHostTest, DevicesThatNoAgentTakesAreAProblem) {
  for (const Status& refusal :
       {FailedPrecondition("-node-reports lacks claims"), Unavailable("the agent ends"),
        MakeStatus(StatusCode::kPermissionDenied, "the API server refuses the ResourceSlice")}) {
    refusal_ = refusal;
    host_->NoteConfiguration(kOn);
    ASSERT_TRUE(RunUntil(loop_, [this] { return !host_->problems().empty(); }));
    EXPECT_THAT(host_->problems().front().message,
                HasSubstr("no ResourceSlice says which CPUs can be claimed: " +
                          std::string(Message(refusal))));
    refusal_ = OkStatus();
    EXPECT_TRUE(RunUntil(loop_, [this] { return host_->problems().empty(); }));
  }
}

// The socket may be made already, and not served yet.
TEST_F(DraHostTest, AnEndSoonAfterTheStartLeavesNoSocket) {
  host_->NoteConfiguration(kOn);
  while (!fs::exists(Registry()))
    std::this_thread::yield();
  host_->StopServing();
  EXPECT_TRUE(RunUntil(loop_, [this] { return !fs::exists(Registry()); }));
}

// A node that is reset, and joins again, has an empty directory of the kubelet.
TEST_F(DraHostTest, SocketsWhoseFilesAreRemovedAreServedAnew) {
  host_->NoteConfiguration(kOn);
  ASSERT_TRUE(Registered());
  fs::remove_all(OnHost("/var/lib/kubelet"));
  EXPECT_TRUE(Registered());
  const std::string socket = OnHost("/var/lib/kubelet/plugins/dra.cpu/dra.sock");
  ASSERT_TRUE(RunUntil(loop_, [&] { return fs::exists(socket); }));
  fs::remove(socket);
  EXPECT_TRUE(RunUntil(loop_, [&] { return ConnectUnix(socket).ok(); }));
  EXPECT_TRUE(Registered());
}

void HoldOneOf(const std::string& driver, HeldClaims& held) {
  held.Add({.uid = "uid-" + driver,
            .namespace_name = "default",
            .name = "c",
            .parts = {{.device = "cpu-numa-0", .node = 0, .cpus = 1}},
            .driver = driver});
}

TEST(DraProblemsTest, ClaimsOfAFormerDriverCannotBeReleased) {
  HeldClaims held;
  const dra::Driver now{.name = "cpu.example.com"};
  HoldOneOf("cpu.example.com", held);
  HoldOneOf("", held);
  EXPECT_FALSE(HeldOfFormerDriver(held, now)) << "they may be its own";
  HoldOneOf("former.example.com", held);
  const std::optional<Problem> problem = HeldOfFormerDriver(held, now);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->kind, "plugin");
  EXPECT_THAT(problem->message,
              HasSubstr("was former.example.com before, and CPUs of 1 claim stay held"));
  EXPECT_THAT(problem->next, HasSubstr("let the driver be former.example.com again"));
  EXPECT_FALSE(HeldOfFormerDriver({}, now));
}

TEST(DraProblemsTest, PlacesThatAPoolHasNoRoomForGetNoClaims) {
  const Machine caches = test::MakeMachine({.packages = 2, .nodes = 5, .l3s = 7, .cores = 7});
  EXPECT_FALSE(NoRoomForDevices(caches, DraDevices::kNuma));
  const std::optional<Problem> left = NoRoomForDevices(caches, DraDevices::kL3);
  ASSERT_TRUE(left);
  EXPECT_THAT(left->message, HasSubstr("of 6 further L3 caches"));
  EXPECT_EQ(left->next, "set dra.Devices to numa");
  const Machine nodes = test::MakeMachine({.packages = 65, .cores = 1});
  const std::optional<Problem> more = NoRoomForDevices(nodes, DraDevices::kNuma);
  ASSERT_TRUE(more);
  EXPECT_THAT(more->message, HasSubstr("of 1 further NUMA nodes"));
}

class HostClaimsTest : public testing::Test {
 protected:
  StatusCode Reserve(const std::string& uid) {
    std::optional<StatusCode> code;
    claims_.Reserve(ClaimFor(uid),
                    [&code](const StatusOr<ClaimGrant>& grant) { code = grant.status().code(); });
    return code.value_or(StatusCode::kUnknown);
  }
  static Claim ClaimFor(const std::string& uid) {
    return {.uid = uid,
            .namespace_name = "default",
            .name = "c",
            .parts = {{.request = "r", .device = "d", .node = 0, .cpus = 1}}};
  }

  EventLoop loop_;
  std::unique_ptr<dra::test::FakeHolder> brain_ = std::make_unique<dra::test::FakeHolder>(4);
  ClaimHolder* active_ = brain_.get();
  HostClaims claims_{loop_, [this] { return active_; }};
};

TEST_F(HostClaimsTest, AreThoseOfTheBrain) {
  EXPECT_EQ(Reserve("a"), StatusCode::kOk);
  EXPECT_EQ(claims_.Held().size(), 1U);
  claims_.Release("a", [](const Status& status) { EXPECT_EQ(status, OkStatus()); });
  EXPECT_TRUE(brain_->Held().empty());
}

TEST_F(HostClaimsTest, UnderNullNothingIsReserved) {
  EXPECT_EQ(Reserve("a"), StatusCode::kOk);
  active_ = nullptr;
  EXPECT_EQ(Reserve("c"), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(claims_.Held().empty());
}

// The next brain, also that of the next daemon, takes over what the state has.
TEST_F(HostClaimsTest, UnderNullAReleaseReachesTheState) {
  test::CrashingFileSystem files(1);
  const StateLabel machine("m");
  const auto open = [&] {
    return std::make_unique<StateStore>(files, "state", machine, [](std::string_view) {});
  };
  const auto has = [](const StateStore& state, const std::string& uid) {
    return state.FindNote(StateStore::PodNote::kClaim, PodSandboxId(uid)).has_value();
  };
  std::unique_ptr<StateStore> state = open();
  state->PutNote(StateStore::PodNote::kClaim, PodSandboxId("a"), "claim");
  state->PutNote(StateStore::PodNote::kClaim, PodSandboxId("b"), "claim");
  active_ = nullptr;
  HostClaims claims(
      loop_, [] { return nullptr; }, state.get());
  std::optional<Status> released;
  claims.Release("a", [&released](const Status& status) { released = status; });
  EXPECT_FALSE(released.has_value()) << "it waits for the disk";
  ASSERT_TRUE(RunUntil(loop_, [&released] { return released.has_value(); }));
  EXPECT_EQ(released, OkStatus());
  state = nullptr;
  state = open();
  EXPECT_FALSE(has(*state, "a"));
  EXPECT_TRUE(has(*state, "b"));
}

// A call that waits for it would block all later ones.
TEST_F(HostClaimsTest, ABrainThatEndsLeavesNobodyWaiting) {
  brain_->waits = true;
  std::optional<StatusCode> code;
  claims_.Reserve(ClaimFor("a"),
                  [&code](const StatusOr<ClaimGrant>& grant) { code = grant.status().code(); });
  active_ = nullptr;
  brain_.reset();
  ASSERT_TRUE(RunUntil(loop_, [&code] { return code.has_value(); }));
  EXPECT_EQ(*code, StatusCode::kUnavailable);
}

}  // namespace
}  // namespace resmgr
