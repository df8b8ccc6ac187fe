// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/hooks/hook_names.h"
#include "test/support/status_matchers.h"

namespace resmgr::hooks {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fails;
using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StatusOr<HookFile> ParseFile(const std::string& text) {
  return ParseHookFile("koordlet.json", text, seconds(2));
}

// A file with these members besides its endpoint.
std::string FileWith(const std::string& members) {
  return R"({"remote-endpoint": "/run/k.sock", )" + members + "}";
}

// Input K01: tabs, a double slash, hooks in any order.
constexpr const char* kOfKoordlet =
    "{\n\t\"remote-endpoint\": \"/var/run/koordlet//koordlet.sock\",\n"
    "\t\"failure-policy\": \"Ignore\",\n\t\"runtime-hooks\": [\n"
    "\t\t\"PreUpdateContainerResources\",\n\t\t\"PreRunPodSandbox\",\n"
    "\t\t\"PreCreateContainer\"\n\t]\n}";

TEST(HookFileTest, ReadsWhatKoordletWrites) {
  const auto file = ParseFile(kOfKoordlet);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->settings.file, "koordlet.json");
  EXPECT_EQ(file->settings.endpoint, "/var/run/koordlet/koordlet.sock");
  EXPECT_EQ(file->settings.failure, FailurePolicy::kIgnore);
  EXPECT_EQ(file->settings.timeout, seconds(2));
  EXPECT_EQ(file->settings.style, AnswerStyle::kEcho);
  EXPECT_THAT(NamesOf(file->settings.points),
              ElementsAre("PreRunPodSandbox", "PreCreateContainer", "PreUpdateContainerResources"));
  EXPECT_THAT(file->warnings, IsEmpty());
}

// Input K02.
TEST(HookFileTest, TheInertHookIsAWarning) {
  const auto file =
      ParseFile(FileWith(R"("runtime-hooks": ["PreRemoveRunPodSandbox", "PreStartContainer"])"));
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(NamesOf(file->settings.points), ElementsAre("PreStartContainer"));
  EXPECT_THAT(file->warnings, ElementsAre(HasSubstr("PreRemoveRunPodSandbox is never called")));
}

TEST(HookFileTest, UnknownNamesAreWarningsWithASuggestion) {
  const auto file =
      ParseFile(FileWith(R"("runtime-hooks": ["PreCreateContainr"], "failure-polcy": "Fail")"));
  ASSERT_THAT(file, IsOk());
  EXPECT_TRUE(file->settings.points.none());
  EXPECT_EQ(file->settings.failure, FailurePolicy::kIgnore);
  EXPECT_THAT(file->warnings, ElementsAre(HasSubstr("did you mean failure-policy?"),
                                          HasSubstr("did you mean PreCreateContainer?")));
}

TEST(HookFileTest, ReadsOurOwnKeys) {
  const auto file =
      ParseFile(FileWith(R"("mode": "sparse", "timeout": "500ms", "failure-policy": "Fail",
                  "runtime-hooks": ["PostStopContainer"])"));
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->settings.style, AnswerStyle::kSparse);
  EXPECT_EQ(file->settings.timeout, milliseconds(500));
  EXPECT_EQ(file->settings.failure, FailurePolicy::kFail);
}

TEST(HookFileTest, EndpointsMayHaveAScheme) {
  const auto file = ParseFile(R"({"remote-endpoint": "unix:///run//k.sock", "runtime-hooks": []})");
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->settings.endpoint, "/run/k.sock");
}

TEST(HookFileTest, NullAndEmptyTextAreAbsent) {
  const auto file = ParseFile(
      FileWith(R"("failure-policy": "", "runtime-hooks": null, "mode": null, "timeout": null)"));
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->settings.failure, FailurePolicy::kIgnore);
  EXPECT_TRUE(file->settings.points.none());
}

TEST(HookFileTest, SaysWhatIsWrong) {
  const struct {
    std::string text;
    std::string why;
  } cases[] = {
      {"", "it is empty"},
      {" \n\t", "it is empty"},
      {R"({"remote-endpoint": "/a)", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"null", "not a JSON object"},
      {"{}", "no remote-endpoint"},
      {R"({"remote-endpoint": null})", "remote-endpoint is not a string"},
      {R"({"remote-endpoint": 7})", "remote-endpoint is not a string"},
      {R"({"remote-endpoint": ""})", "not the absolute path"},
      {R"({"remote-endpoint": "run/k.sock"})", "not the absolute path"},
      {R"({"remote-endpoint": "unix://k.sock"})", "not the absolute path"},
      {R"({"remote-endpoint": "tcp://1.2.3.4:5"})", "not the absolute path"},
      {R"({"remote-endpoint": "/)" + std::string(200, 'a') + R"("})", "remote-endpoint: "},
      {FileWith(R"("failure-policy": "Faill")"), "failure-policy: \"Faill\" is not one of"},
      {FileWith(R"("failure-policy": true)"), "failure-policy is not a string"},
      {FileWith(R"("runtime-hooks": "PreCreateContainer")"), "runtime-hooks is not a list"},
      {FileWith(R"("runtime-hooks": [1])"), "not a string"},
      {FileWith(R"("mode": "Echo")"), "mode: \"Echo\" is not one of echo, sparse"},
      {FileWith(R"("timeout": "0s")"), "timeout: "},
      {FileWith(R"("timeout": "3m")"), "timeout: "},
      {FileWith(R"("timeout": 2)"), "timeout is not a string"},
      {FileWith(R"("x": [[[[[[[[]]]]]]]])"), "more than 8 levels"},
      {std::string(kLongestHookFile + 1, ' '), "more than 65536 bytes"},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_THAT(ParseFile(text), Fails(StatusCode::kInvalidArgument, HasSubstr(why)))
        << text.substr(0, 100);
  }
}

TEST(HookFileTest, WarningsAreBounded) {
  std::string hooks;
  for (int i = 0; i < 1000; ++i)
    hooks += fmt::format("{}\"h{}\"", hooks.empty() ? "" : ",", i);
  const auto file = ParseFile(FileWith(R"("runtime-hooks": [)" + hooks + "]"));
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(file->warnings.size(), kMostHookWarnings);
  EXPECT_EQ(file->warnings.back(), "992 more warnings are left out");
}

TEST(HookNamesTest, EveryPointHasItsName) {
  for (size_t i = 0; i < kHookPoints; ++i) {
    const auto point = static_cast<HookPoint>(i);
    EXPECT_EQ(HookPointOf(NameOf(point)), point);
    EXPECT_EQ(MethodOf(point),
              fmt::format("/runtime.v1alpha1.RuntimeHookService/{}Hook", NameOf(point)));
  }
  EXPECT_EQ(NameOf(HookPoint::kPreUpdateContainerResources), "PreUpdateContainerResources");
  EXPECT_EQ(NameOf(HookPoint::kPostStopContainer), "PostStopContainer");
  EXPECT_EQ(HookPointOf(kInertPoint), std::nullopt);
  EXPECT_EQ(HookPointOf("precreatecontainer"), std::nullopt);
}

}  // namespace
}  // namespace resmgr::hooks
