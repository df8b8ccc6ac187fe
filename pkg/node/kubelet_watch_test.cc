// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/kubelet_watch.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using test::RunUntil;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CpuManagerPolicyTest, IsReadFromTheKubeletsStateFile) {
  EXPECT_EQ(CpuManagerPolicyOf(R"({"policyName":"static","defaultCpuSet":"0,2-7","entries":{)"
                               R"("u":{"main":"1"}},"checksum":3242152201})"),
            "static");
  EXPECT_EQ(CpuManagerPolicyOf(R"({"policyName":"none","defaultCpuSet":"","checksum":1})"), "none");
  for (const char* const text : {"", "{", "[]", "7", "{}", R"({"policyName":7})", "\xff"})
    EXPECT_EQ(CpuManagerPolicyOf(text), std::nullopt) << text;
}

class KubeletWatchTest : public testing::Test {
 protected:
  void Put(const std::string& text) const { std::ofstream(file()) << text; }
  std::string file() const { return directory_.File("cpu_manager_state"); }
  KubeletWatch::Options Options() {
    return {.loop = loop_, .file = file(), .period = std::chrono::milliseconds(1)};
  }

  TempDir directory_;
  EventLoop loop_;
};

TEST_F(KubeletWatchTest, ACpuManagerThatIsOnIsAProblemUntilItIsOff) {
  KubeletWatch watch(Options());
  EXPECT_THAT(watch.problems(), IsEmpty()) << "a node without a kubelet";
  Put(R"({"policyName":"static","defaultCpuSet":"0-3"})");
  ASSERT_TRUE(RunUntil(loop_, [&] { return !watch.problems().empty(); }));
  const Problem problem = watch.problems().at(0);
  EXPECT_EQ(problem.kind, "cpu-manager-on");
  EXPECT_THAT(problem.message, HasSubstr("policyName static"));
  EXPECT_THAT(problem.objects, testing::ElementsAre(file()));
  EXPECT_THAT(problem.next, HasSubstr("systemctl restart kubelet"));
  EXPECT_NE(problem.since, std::chrono::system_clock::time_point());
  Put(R"({"policyName":"none","defaultCpuSet":""})");
  EXPECT_TRUE(RunUntil(loop_, [&] { return watch.problems().empty(); }));
}

// Such a file is not read, and no call waits for it.
TEST_F(KubeletWatchTest, AFileThatIsNoneOfTheKubeletsIsNoProblem) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  int looks = 0;
  KubeletWatch watch(Options());
  const auto timer = loop_.Every(std::chrono::milliseconds(2), [&looks] { ++looks; });
  EXPECT_TRUE(RunUntil(loop_, [&] { return looks > 5; }));
  EXPECT_THAT(watch.problems(), IsEmpty());
}

}  // namespace
}  // namespace resmgr
