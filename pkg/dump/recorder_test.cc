// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/recorder.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/dump/dump_fixture.h"
#include "pkg/dump/output_file.h"
#include "pkg/dump/testing/full_after.h"

namespace resmgr::dump {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

class RecorderTest : public DumpFixture {
 protected:
  void StartRecording() { ASSERT_TRUE(Start({.specs = {"record:" + PathOf("r.jsonl")}}).ok()); }

  std::vector<std::string> Lines() {
    dumper_->Close(std::chrono::seconds(30));
    return LinesOf(PathOf("r.jsonl"));
  }

  // The line of the only call, without its times, which must be present.
  json OnlyCall() {
    const auto lines = Lines();
    EXPECT_EQ(lines.size(), 2);
    json call = json::parse(lines.back());
    EXPECT_TRUE(call.at("t").is_number());
    EXPECT_TRUE(call.at("latency").is_number());
    call.erase("t");
    call.erase("latency");
    return call;
  }
};

void FillPod(runtime::v1::PodSandboxConfig& config) {
  config.mutable_metadata()->set_name("web");
  config.mutable_metadata()->set_uid("uid-1");
  config.mutable_metadata()->set_namespace_("default");
  config.mutable_linux()->set_cgroup_parent("/kubepods/burstable/poduid-1");
  (*config.mutable_labels())["app"] = "web";
  (*config.mutable_annotations())["policy/x"] = "y";
  (*config.mutable_annotations())["kubectl.kubernetes.io/last-applied-configuration"] = "secret";
}

json PodJson() {
  return {{"uid", "uid-1"},
          {"name", "web"},
          {"namespace", "default"},
          {"cgroup_parent", "/kubepods/burstable/poduid-1"},
          {"labels", {{"app", "web"}}},
          {"annotations", {{"policy/x", "y"}}}};
}

TEST_F(RecorderTest, BeginsWithAHeader) {
  StartRecording();
  EXPECT_THAT(Lines(),
              ElementsAre(MatchesRegex("\\{\"recording\":\"cri-resmgr\",\"version\":1,\"start\":"
                                       "\"[0-9-]{10}T[0-9:]{8}Z\"\\}")));
}

TEST_F(RecorderTest, HoldsWhatContainersUse) {
  StartRecording();
  EXPECT_EQ(dumper_->recording(), 1U);
  dumper_->RecordUse({{.container = "c1", .cpus = 0.12345, .pressure = 40}, {.container = "c2"}});
  json line = json::parse(Lines().back());
  EXPECT_TRUE(line.at("t").is_number());
  line.erase("t");
  EXPECT_EQ(line, (json{{"op", "use"}, {"use", {{"c1", {0.123, 40.0}}, {"c2", {0.0}}}}}));
}

TEST_F(RecorderTest, UseIsDroppedWithoutARecording) {
  ASSERT_TRUE(Start({.specs = {"reset"}}).ok());
  EXPECT_EQ(dumper_->recording(), 0U);
  EXPECT_TRUE(dumper_->RecordUse({{.container = "c1"}})) << "nothing is missing anywhere";
}

TEST_F(RecorderTest, UseWithoutRoomIsCountedAndTold) {
  int lost = 0;
  ASSERT_TRUE(
      Start({.specs = {"record:" + PathOf("r.jsonl")}, .on_lost = [&lost] { ++lost; }}).ok());
  EXPECT_FALSE(dumper_->RecordUse(std::vector<RecordedUse>(2'000'000)));
  EXPECT_FALSE(dumper_->RecordUse(std::vector<RecordedUse>(2'000'000)));
  EXPECT_TRUE(dumper_->RecordUse({{.container = "c1"}}));
  EXPECT_EQ(lost, 2);
  EXPECT_EQ(dumper_->lost_calls(), 0U) << "it is no call";
  int told = 0;
  for (const std::string& line : Lines())
    if (const json parsed = json::parse(line); parsed.contains("lost_use"))
      told += parsed.at("lost_use").get<int>();
  EXPECT_EQ(told, 2);
  EXPECT_THAT(Log(), testing::Contains(testing::HasSubstr("the recording fell behind")));
}

// A recorder whose file may lack room.
class FullDiskTest : public DumpFixture {
 protected:
  void Use(const std::string& container = "c1") {
    recorder_.Take({.kind = Event::Kind::kUse, .use = {{.container = container}}});
  }
  Status Flush() { return recorder_.file().Flush(); }
  std::vector<std::string> Lines() const { return LinesOf(PathOf("r.jsonl")); }

  std::atomic<uint64_t> gaps_{0};
  Recorder recorder_{*OutputFile::Create({.path = PathOf("r.jsonl")}, std::chrono::milliseconds(0)),
                     {},
                     {},
                     gaps_};
};

TEST_F(FullDiskTest, TellsHowManyLinesItsFileLacks) {
  Use();
  ASSERT_TRUE(Flush().ok());
  for (int i = 0; i < 2; ++i) {
    Use();
    recorder_.Take({.kind = Event::Kind::kLost, .lost_calls = 3});
    const FullAfter full(1);
    Flush().IgnoreError();
  }
  EXPECT_EQ(gaps_, 1U) << "of the second one the next line tells";
  Use();
  ASSERT_TRUE(Flush().ok());
  Use();
  ASSERT_TRUE(Flush().ok());
  std::vector<std::string> kinds;
  for (const std::string& line : Lines()) {
    const json parsed = json::parse(line);
    kinds.push_back(parsed.contains("op") ? "use" : parsed.contains("version") ? "head" : line);
  }
  EXPECT_THAT(kinds,
              ElementsAre("head", "use", R"({"lost_calls":6})", R"({"lost_use":2})", "use", "use"));
  EXPECT_EQ(gaps_, 2U);
}

// The kernel writes the lines that the disk has room for.
TEST_F(FullDiskTest, LinesInFrontOfAFullDiskAreNotLost) {
  Use();
  recorder_.Take({.kind = Event::Kind::kLost, .lost_calls = 3, .lost_use = 4});
  Use(std::string(1000, 'c'));
  Use();
  {
    const FullAfter full(400);
    EXPECT_FALSE(Flush().ok());
  }
  Use();
  ASSERT_TRUE(Flush().ok());
  EXPECT_EQ(gaps_, 1U);
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("version"), HasSubstr("c1"), R"({"lost_calls":3})",
                                   R"({"lost_use":4})", R"({"lost_use":2})", HasSubstr("c1")));
}

TEST_F(FullDiskTest, AFileThatWasBegunOnAFullDiskHasItsHeader) {
  {
    const FullAfter full(1);
    EXPECT_FALSE(Flush().ok());
  }
  Use();
  ASSERT_TRUE(Flush().ok());
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(json::parse(lines[0]).contains("version"));
  EXPECT_TRUE(json::parse(lines[1]).contains("op"));
}

TEST_F(RecorderTest, HoldsTimesWithSixDecimals) {
  StartRecording();
  FailedCall(kStart, runtime::v1::StartContainerRequest(), 0, "");
  EXPECT_THAT(
      Lines().back(),
      MatchesRegex("\\{\"t\":[0-9]+\\.[0-9]{6},\"op\":\"StartContainer\",\"ok\":true,"
                   "\"code\":0,\"latency\":[0-9]+\\.[0-9]{6},\"container\":\\{\"id\":\"\"\\}\\}"));
}

TEST_F(RecorderTest, HoldsPodsWithTheIdOfTheReply) {
  StartRecording();
  runtime::v1::RunPodSandboxRequest request;
  FillPod(*request.mutable_config());
  request.set_runtime_handler("kata");
  runtime::v1::RunPodSandboxResponse reply;
  reply.set_pod_sandbox_id("p1");
  Call(kRun, request, reply, true);
  json pod = PodJson();
  pod["runtime_handler"] = "kata";
  pod["id"] = "p1";
  EXPECT_EQ(OnlyCall(), (json{{"op", "RunPodSandbox"}, {"ok", true}, {"code", 0}, {"pod", pod}}));
}

TEST_F(RecorderTest, HoldsContainersWithoutTheirSecrets) {
  StartRecording();
  runtime::v1::CreateContainerRequest request;
  request.set_pod_sandbox_id("p1");
  FillPod(*request.mutable_sandbox_config());
  auto* config = request.mutable_config();
  config->mutable_metadata()->set_name("c");
  config->mutable_metadata()->set_attempt(2);
  config->add_command("secret");
  config->add_envs()->set_value("secret");
  (*config->mutable_labels())["l"] = "1";
  auto* resources = config->mutable_linux()->mutable_resources();
  resources->set_cpu_shares(1024);
  resources->set_cpuset_cpus("0-1");
  runtime::v1::CreateContainerResponse reply;
  reply.set_container_id("id-1");
  Call("/runtime.v1alpha2.RuntimeService/CreateContainer", request, reply);
  json pod = PodJson();
  pod["id"] = "p1";
  const json container = {{"name", "c"},
                          {"attempt", 2},
                          {"id", "id-1"},
                          {"labels", {{"l", "1"}}},
                          {"resources", {{"cpu_shares", 1024}, {"cpuset_cpus", "0-1"}}}};
  EXPECT_EQ(OnlyCall(), (json{{"op", "CreateContainer"},
                              {"ok", true},
                              {"code", 0},
                              {"pod", pod},
                              {"container", container}}));
  EXPECT_THAT(Lines().back(), Not(HasSubstr("secret")));
}

TEST_F(RecorderTest, HoldsFailuresWithTheirCode) {
  StartRecording();
  runtime::v1::UpdateContainerResourcesRequest request;
  request.set_container_id("id-1");
  request.mutable_linux()->set_cpu_quota(-1);
  FailedCall("/runtime.v1.RuntimeService/UpdateContainerResources", request, 5, "gone");
  EXPECT_EQ(OnlyCall(),
            (json{{"op", "UpdateContainerResources"},
                  {"ok", false},
                  {"code", 5},
                  {"container", {{"id", "id-1"}, {"resources", {{"cpu_quota", -1}}}}}}));
}

TEST_F(RecorderTest, HoldsPodUpdates) {
  StartRecording();
  runtime::v1::UpdatePodSandboxResourcesRequest request;
  request.set_pod_sandbox_id("p1");
  request.mutable_resources()->set_cpu_shares(2);
  request.mutable_overhead();
  Call("/runtime.v1.RuntimeService/UpdatePodSandboxResources", request,
       runtime::v1::UpdatePodSandboxResourcesResponse());
  EXPECT_EQ(OnlyCall()["pod"],
            (json{{"id", "p1"}, {"resources", {{"cpu_shares", 2}}}, {"overhead", json::object()}}));
}

TEST_F(RecorderTest, HoldsTheIdOfEveryOtherCall) {
  StartRecording();
  for (const std::string op : {"StartContainer", "StopContainer", "RemoveContainer"}) {
    runtime::v1::StartContainerRequest request;
    request.set_container_id(op + "-id");
    FailedCall("/runtime.v1.RuntimeService/" + op, request, 0, "");
  }
  for (const std::string op : {"StopPodSandbox", "RemovePodSandbox"}) {
    runtime::v1::StopPodSandboxRequest request;
    request.set_pod_sandbox_id(op + "-id");
    FailedCall("/runtime.v1.RuntimeService/" + op, request, 0, "");
  }
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 6);
  for (size_t i = 1; i < lines.size(); ++i) {
    const json call = json::parse(lines[i]);
    const char* what = i <= 3 ? "container" : "pod";
    EXPECT_EQ(call[what]["id"], call["op"].get<std::string>() + "-id");
  }
}

TEST_F(RecorderTest, SaysWhatDidNotDecode) {
  StartRecording();
  const CallRef call = NewCall(kCreate);
  dumper_->OnRequest(call, Payload("\xff"));
  dumper_->OnEnd(call, 13, "x");
  EXPECT_EQ(OnlyCall()["undecodable"], true);
}

TEST_F(RecorderTest, LeavesOtherCallsAndTheLogAlone) {
  StartRecording();
  EXPECT_EQ(dumper_->WantsMethod(kVersion), Interest::kNone);
  EXPECT_EQ(dumper_->WantsMethod("/other.Service/CreateContainer"), Interest::kNone);
  EXPECT_EQ(dumper_->WantsMethod("/nri.pkg.api.v1alpha1.Plugin/CreateContainer"), Interest::kNone);
  EXPECT_EQ(dumper_->WantsMethod(kCreate), Interest::kMessages);
  FailedCall(kCreate, runtime::v1::CreateContainerRequest(), 0, "");
  EXPECT_EQ(Lines().size(), 2);
  EXPECT_THAT(LogSoFar(), IsEmpty());
}

TEST_F(RecorderTest, GoesTogetherWithADump) {
  ASSERT_TRUE(Start({.specs = {"reset,name:.*", "record:" + PathOf("r.jsonl")}}).ok());
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  Call(kStart, runtime::v1::StartContainerRequest(), runtime::v1::StartContainerResponse());
  EXPECT_THAT(Log(), ElementsAre("#1 (passthrough) REQUEST Version",
                                 "#2 (passthrough) REQUEST StartContainer"));
  EXPECT_EQ(Lines().size(), 2);
}

}  // namespace
}  // namespace resmgr::dump
