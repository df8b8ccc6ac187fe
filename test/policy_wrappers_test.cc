// SPDX-License-Identifier: Apache-2.0
// Wrappers of policies forward each function of the interface: one with a default that a wrapper
// forgets would silently do nothing.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = RESMGR_SOURCE_DIR;

std::string TextOf(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> VirtualFunctions() {
  const std::string text = TextOf(kRoot / "pkg/policy/policy.h");
  // The type in front of the name may hold templates and names of classes.
  static const std::regex kFunction(R"(virtual\s+[\w:<>\s,]+?[\s>](\w+)\()");
  std::set<std::string> names;
  for (std::sregex_iterator found(text.begin(), text.end(), kFunction), end; found != end; ++found)
    names.insert((*found)[1]);
  return names;
}

TEST(PolicyWrappersTest, ForwardEachFunction) {
  const std::set<std::string> functions = VirtualFunctions();
  ASSERT_GT(functions.size(), 20U);
  ASSERT_TRUE(functions.contains("ClassesOf"));
  ASSERT_TRUE(functions.contains("FollowUse"));
  int wrappers = 0;
  for (const char* const folder : {"pkg", "policies", "cmd"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      std::string text = TextOf(entry.path());
      if (text.find(" : public Policy {") == std::string::npos ||
          text.find("unique_ptr<Policy> policy_;") == std::string::npos)
        continue;
      ++wrappers;
      const fs::path source = fs::path(entry.path()).replace_extension(".cc");
      if (extension == ".h" && fs::exists(source)) text += TextOf(source);
      for (const std::string& function : functions)
        EXPECT_NE(text.find("policy_->" + function + "("), std::string::npos)
            << entry.path() << " does not forward " << function;
    }
  }
  EXPECT_GT(wrappers, 0);
}

}  // namespace
}  // namespace resmgr
