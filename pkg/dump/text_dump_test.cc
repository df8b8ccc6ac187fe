// SPDX-License-Identifier: Apache-2.0
// The lines that users see, from the calls to the log and the file.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/nri.pb.h"
#include "pkg/api/runtime_v1.pb.h"
#include "pkg/dump/dump_fixture.h"

namespace resmgr::dump {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;

using TextDumpTest = DumpFixture;

runtime::v1::VersionResponse VersionReply() {
  runtime::v1::VersionResponse reply;
  reply.set_version("0.1.0");
  reply.set_runtime_name("fake");
  return reply;
}

runtime::v1::CreateContainerRequest CreateRequest() {
  runtime::v1::CreateContainerRequest request;
  request.set_pod_sandbox_id("p1");
  auto* config = request.mutable_config();
  config->mutable_metadata()->set_name("c1");
  auto* env = config->add_envs();
  env->set_key("TOKEN");
  env->set_value("secret");
  config->mutable_linux()->mutable_resources()->set_cpuset_cpus("0-3");
  return request;
}

TEST_F(TextDumpTest, NriCallsAreShownAsCriCallsAre) {
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}}).ok());
  namespace nri = ::nri::pkg::api::v1alpha1;
  nri::CreateContainerRequest request;
  request.mutable_container()->set_name("c1");
  request.mutable_container()->add_env("TOKEN=secret");
  nri::CreateContainerResponse reply;
  reply.mutable_adjust()->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus("1");
  Call("/nri.pkg.api.v1alpha1.Plugin/CreateContainer", request, reply, true);
  nri::StateChangeEvent event;
  event.mutable_pod()->set_name("web");
  Call("/nri.pkg.api.v1alpha1.Plugin/StateChange", event, nri::Empty());
  const std::vector<std::string> lines = Log();
  EXPECT_THAT(lines, ::testing::Contains("#1     CreateContainer =>   env: <redacted>"));
  EXPECT_THAT(lines, ::testing::Contains("#1     CreateContainer <=         cpus: \"1\""));
  EXPECT_THAT(lines, ::testing::Contains("#2     StateChange =>   name: web"));
  EXPECT_THAT(lines, Each(Not(HasSubstr("undecodable"))));
}

TEST_F(TextDumpTest, FullShowsRequestAndReplyOverSeveralLines) {
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}}).ok());
  runtime::v1::CreateContainerResponse reply;
  reply.set_container_id("id1");
  Call(kCreate, CreateRequest(), reply, true);
  EXPECT_THAT(
      Log(),
      ElementsAre("#1 (intercepted) REQUEST CreateContainer", "#1     CreateContainer => config:",
                  "#1     CreateContainer =>   envs:", "#1     CreateContainer =>   - key: TOKEN",
                  "#1     CreateContainer =>     value: <redacted>",
                  "#1     CreateContainer =>   linux:", "#1     CreateContainer =>     resources:",
                  "#1     CreateContainer =>       cpuset_cpus: 0-3",
                  "#1     CreateContainer =>   metadata:", "#1     CreateContainer =>     name: c1",
                  "#1     CreateContainer => pod_sandbox_id: p1",
                  "#1 (intercepted) REPLY CreateContainer <= container_id: id1"));
}

TEST_F(TextDumpTest, ShowsWhatWeChangeInARequest) {
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}}).ok());
  const CallRef call = NewCall(kCreate, true);
  runtime::v1::CreateContainerRequest request;
  request.set_pod_sandbox_id("p1");
  request.mutable_config()->mutable_linux()->mutable_resources()->set_cpu_shares(512);
  runtime::v1::CreateContainerRequest suffix;
  suffix.mutable_config()->mutable_linux()->mutable_resources()->set_cpuset_cpus("1");
  const std::string before = request.SerializeAsString();
  dumper_->OnRequest(call, Payload(before));
  dumper_->OnChanged(call, Payload(before), before + suffix.SerializeAsString());
  dumper_->OnEnd(call, 0, "");
  const std::vector<std::string> log = Log();
  EXPECT_EQ(log.back(),
            R"(#1 (intercepted) CHANGED CreateContainer: linux.resources.cpuset_cpus "" -> "1")");
}

TEST_F(TextDumpTest, ChangesAreDumpedWithTheRequestOnly) {
  ASSERT_TRUE(Start({.specs = {"reset,name:.*"}}).ok());
  const CallRef call = NewCall(kCreate, true);
  dumper_->OnRequest(call, Payload());
  dumper_->OnChanged(call, Payload(), CreateRequest().SerializeAsString());
  EXPECT_THAT(Log(), IsEmpty());
}

TEST_F(TextDumpTest, CountsOfEndlesslyManyMethodsAreBounded) {
  ASSERT_TRUE(
      Start({.specs = {"reset,count:.*"}, .count_period = std::chrono::milliseconds(0)}).ok());
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 5'000; ++i)
      dumper_->OnRequest(NewCall(fmt::format("/s/Method{}", i)), Payload());
  }
  const std::vector<std::string> log = Log();
  EXPECT_GT(std::ranges::count_if(
                log, [](const auto& line) { return line.find("(other methods)") != line.npos; }),
            3'000);
  std::set<std::string> names;
  for (const std::string& line : log)
    names.insert(line.substr(0, line.find('#')));
  EXPECT_LT(names.size(), 1'100U);
}

TEST_F(TextDumpTest, FullShowsShortMessagesOnOneLine) {
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}}).ok());
  Call(kVersion, runtime::v1::VersionRequest(), VersionReply());
  EXPECT_THAT(
      Log(),
      ElementsAre("#1 (passthrough) REQUEST Version => {}", "#1 (passthrough) REPLY Version",
                  "#1     Version <= runtime_name: fake", "#1     Version <= version: 0.1.0"));
}

TEST_F(TextDumpTest, FileStartsLinesWithTimeOrLatency) {
  const std::string file = PathOf("dump");
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}, .file = file}).ok());
  Call(kVersion, runtime::v1::VersionRequest(), VersionReply());
  FailedCall(kCreate, runtime::v1::CreateContainerRequest(), 5, "no sandbox", true);
  Log();
  const std::string stamp =
      "\\[[0-9]{4}-[A-Z][a-z]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}\\]";
  const std::string latency = "\\[ +\\+[0-9]+\\.[0-9]{6}\\]";
  const std::vector<std::string> lines = LinesOf(file);
  EXPECT_THAT(
      lines,
      ElementsAre(
          MatchesRegex(stamp + " #1 \\(passthrough\\) REQUEST Version => \\{\\}"),
          MatchesRegex(latency + " #1 \\(passthrough\\) REPLY Version \\(34 bytes as yaml\\)"),
          MatchesRegex(latency + " #1     Version <= runtime_name: fake"),
          MatchesRegex(latency + " #1     Version <= version: 0.1.0"),
          MatchesRegex(stamp + " #2 \\(intercepted\\) REQUEST CreateContainer => \\{\\}"),
          MatchesRegex(latency + " #2 \\(intercepted\\) FAILED CreateContainer"),
          MatchesRegex(latency + " #2   CreateContainer <= rpc error: code = NotFound desc = "
                                 "no sandbox")));
  for (const std::string& line : lines)
    EXPECT_EQ(line.find(']'), 25) << line;
}

TEST_F(TextDumpTest, FileNotesTheSizeOfShortReplies) {
  const std::string file = PathOf("dump");
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}, .file = file}).ok());
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  Log();
  EXPECT_THAT(LinesOf(file).at(1),
              HasSubstr("] #1 (passthrough) REPLY Version <= {} (3 bytes as yaml)"));
}

TEST_F(TextDumpTest, TimeIsThatOfTheRequest) {
  const std::string file = PathOf("dump");
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}, .file = file}).ok());
  std::tm local = {};
  local.tm_year = 106;
  local.tm_mday = 2;
  local.tm_hour = 15;
  local.tm_min = 4;
  local.tm_sec = 5;
  local.tm_isdst = -1;
  CallRef call = NewCall(kVersion);
  call.wall_start = std::chrono::system_clock::from_time_t(std::mktime(&local)) +
                    std::chrono::microseconds(78'999);
  call.start -= std::chrono::seconds(12);
  dumper_->OnRequest(call, Payload(""));
  dumper_->OnReply(call, Payload(""));
  Log();
  EXPECT_THAT(
      LinesOf(file),
      ElementsAre("[2006-Jan-02 15:04:05.078] #1 (passthrough) REQUEST Version => {}",
                  MatchesRegex("\\[              \\+12\\.[0-9]{6}\\] #1 \\(passthrough\\) REPLY "
                               "Version <= \\{\\} \\(3 bytes as yaml\\)")));
}

TEST_F(TextDumpTest, FailuresAreWarnings) {
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}}).ok());
  FailedCall(kStart, runtime::v1::StartContainerRequest(), 14, "two\nlines", true);
  FailedCall(kStart, runtime::v1::StartContainerRequest(), 99, "odd");
  EXPECT_THAT(
      Log(),
      ElementsAre("#1 (intercepted) REQUEST StartContainer => {}",
                  "!#1 (intercepted) FAILED StartContainer",
                  "!#1   StartContainer <= rpc error: code = Unavailable desc = two\\x0alines",
                  "#2 (passthrough) REQUEST StartContainer => {}",
                  "!#2 (passthrough) FAILED StartContainer",
                  "!#2   StartContainer <= rpc error: code = Code(99) desc = odd"));
}

TEST_F(TextDumpTest, NameIsOneLineAtTheEnd) {
  const std::string file = PathOf("dump");
  ASSERT_TRUE(Start({.specs = {"reset,name:.*"}, .file = file}).ok());
  EXPECT_EQ(dumper_->WantsMethod(kVersion), Interest::kCalls);
  Call(kVersion, runtime::v1::VersionRequest(), VersionReply());
  FailedCall(kCreate, runtime::v1::CreateContainerRequest(), 2, "bad", true);
  EXPECT_THAT(Log(), ElementsAre("#1 (passthrough) REQUEST Version",
                                 "#2 (intercepted) FAILED CreateContainer"));
  EXPECT_THAT(LinesOf(file), Each(MatchesRegex("\\[ +\\+[0-9]+\\.[0-9]{6}\\] #[12] \\(.*")));
}

TEST_F(TextDumpTest, OffShowsNothing) {
  ASSERT_TRUE(Start({.specs = {"off:.*,full:Version"}}).ok());
  EXPECT_EQ(dumper_->WantsMethod(kCreate), Interest::kNone);
  EXPECT_EQ(dumper_->WantsMethod(kVersion), Interest::kMessages);
  FailedCall(kCreate, CreateRequest(), 2, "bad");
  EXPECT_THAT(Log(), IsEmpty());
}

TEST_F(TextDumpTest, CountSpeaksUpWithACallAfterThePeriod) {
  ASSERT_TRUE(Start({.specs = {"reset,count:.*"}, .count_period = std::chrono::hours(1)}).ok());
  for (int i = 0; i < 5; ++i)
    Call(kVersion, runtime::v1::VersionRequest(), VersionReply());
  EXPECT_THAT(Log(), IsEmpty());

  ASSERT_TRUE(
      Start({.specs = {"reset,count:.*"}, .count_period = std::chrono::milliseconds(0)}).ok());
  for (int i = 0; i < 3; ++i)
    Call(kVersion, runtime::v1::VersionRequest(), VersionReply());
  EXPECT_THAT(Log(), ElementsAre(HasSubstr("(passthrough) REQUEST: Version #2, 2 total, "),
                                 HasSubstr("(passthrough) REQUEST: Version #3, 1 total, ")));
}

TEST_F(TextDumpTest, StreamShowsEachReply) {
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}}).ok());
  const CallRef call = NewCall(kEvents);
  dumper_->OnRequest(call, Payload(""));
  for (const std::string id : {"a", "b"}) {
    runtime::v1::ContainerEventResponse event;
    event.set_container_id(id);
    dumper_->OnReply(call, Payload(event.SerializeAsString()));
  }
  dumper_->OnEnd(call, 1, "context canceled");
  EXPECT_THAT(Log(), ElementsAre("#1 (passthrough) REQUEST GetContainerEvents => {}",
                                 "#1 (passthrough) REPLY GetContainerEvents <= container_id: a",
                                 "#1 (passthrough) REPLY GetContainerEvents <= container_id: b",
                                 "!#1 (passthrough) FAILED GetContainerEvents",
                                 "!#1   GetContainerEvents <= rpc error: code = Canceled desc = "
                                 "context canceled"));
}

TEST_F(TextDumpTest, UnknownMethodsShowTheirFields) {
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}}).ok());
  const CallRef call = NewCall("/runtime.v9.Service/Brand\nNew");
  dumper_->OnRequest(call, Payload("\x0a\x06secret\x10\x05"));
  dumper_->OnReply(call, Payload("\xff"));
  EXPECT_THAT(Log(), ElementsAre("#1 (passthrough) REQUEST Brand\\x0aNew",
                                 "#1     Brand\\x0aNew => unknown_fields:",
                                 "#1     Brand\\x0aNew => - 1 6 bytes",
                                 "#1     Brand\\x0aNew => - 2 varint 5",
                                 "#1 (passthrough) REPLY Brand\\x0aNew <= undecodable: 1 bytes"));
}

TEST_F(TextDumpTest, SecretsOfBothVersionsAppearOnlyWhenAskedFor) {
  for (const bool show : {false, true}) {
    ASSERT_TRUE(Start({.specs = {"reset,full:.*"}, .show_secrets = show}).ok());
    for (const std::string version : {"v1", "v1alpha2"}) {
      runtime::v1::PullImageRequest pull;
      pull.mutable_auth()->set_password("pass-" + version);
      FailedCall("/runtime." + version + ".ImageService/PullImage", pull, 2, "x");
    }
    std::string text;
    for (const std::string& line : Log())
      text += line + "\n";
    if (show) {
      EXPECT_THAT(text,
                  AllOf(HasSubstr("password: pass-v1\n"), HasSubstr("password: pass-v1alpha2\n")));
    } else {
      EXPECT_THAT(text, AllOf(Not(HasSubstr("pass-")), HasSubstr("password: <redacted>")));
    }
    dumper_.reset();
    ClearLog();
  }
}

TEST_F(TextDumpTest, HugeMessageIsShownWhole) {
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}}).ok());
  runtime::v1::ListContainersResponse list;
  for (int i = 0; i < 5'000; ++i)
    list.add_containers()->set_id(std::string(100, 'x') + std::to_string(i));
  Call("/runtime.v1.RuntimeService/ListContainers", runtime::v1::ListContainersRequest(), list);
  const auto log = Log();
  ASSERT_THAT(log, SizeIs(5'003));
  EXPECT_THAT(log.back(), HasSubstr("ListContainers <= - id: xxx"));
}

}  // namespace
}  // namespace resmgr::dump
