// SPDX-License-Identifier: Apache-2.0
// scripts/part-costs names the parts of scripts/test that need more processor time than before.
#include <cstdlib>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class PartCostsTest : public testing::Test {
 protected:
  void Put(const std::string& kept, const std::string& measured) const {
    std::ofstream(directory_.File("kept")) << kept;
    std::ofstream(directory_.File("measured")) << measured;
  }
  std::string TextOf(const std::string& name) const {
    return ReadFile(directory_.File(name), size_t{1} << 20).value_or("unread");
  }
  std::string Run(const std::string& option = "") const {
    const std::string command = RESMGR_SOURCE_DIR "/scripts/part-costs " + option + " " +
                                directory_.File("measured") + " " + directory_.File("kept") + " >" +
                                directory_.File("table");
    EXPECT_EQ(std::system(command.c_str()), 0) << "it never fails";
    return TextOf("table");
  }

  const TempDir directory_;
};

TEST_F(PartCostsTest, NamesPartsThatGrew) {
  Put("100 release build\n100 asan tests\n100 tsan tests\n",
      "100 9 release build\n80 31.5 asan tests\n50 0 tsan tests\n20 1 a new part\n");
  EXPECT_THAT(Run(),
              AllOf(ContainsRegex("release build +109.0 +100.0 +9 %\n"),
                    ContainsRegex("asan tests +111.5 +100.0 +1[12] %  grew by more than 10 %\n"),
                    ContainsRegex("tsan tests +50.0 +100.0 +-50 %\n"),
                    ContainsRegex("a new part +21.0 +-\n")));
}

TEST_F(PartCostsTest, ASlowerProcessorIsNoGrowth) {
  Put("2 reference\n100 release build\n1 formatting\n",
      "5 0 reference\n190 10 release build\n3 0 reference\n3 0 formatting\n");
  EXPECT_THAT(Run(), AllOf(ContainsRegex("release build +200.0 +200.0 +0 %\n"),
                           Not(HasSubstr("grew")), Not(HasSubstr("formatting"))))
      << "small parts are left out";
}

TEST_F(PartCostsTest, APartThatRanTwiceIsOne) {
  Put("100 asan build\n", "40 10 asan build\n40 10 asan build\n");
  EXPECT_THAT(Run(), ContainsRegex("asan build +100.0 +100.0 +0 %\n"));
}

TEST_F(PartCostsTest, RenewKeepsCommentsAndPartsThatDidNotRun) {
  Put("# Text.\n2 reference\n100 release build\n30 machine tests\n",
      "4 0 reference\n150 50 release build\n1 0 formatting\n");
  Run("--renew");
  EXPECT_EQ(TextOf("kept"), "# Text.\n60.00 machine tests\n4.00 reference\n200.00 release build\n");
}

}  // namespace
}  // namespace resmgr
