// SPDX-License-Identifier: Apache-2.0
// The code that docs/how-to-*.md shows is that of examples, which are built and tested.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// The C++ blocks of a page.
std::vector<std::string> CodeIn(const std::string& page) {
  constexpr std::string_view kBegin = "```cpp\n";
  constexpr std::string_view kEnd = "```";
  std::vector<std::string> blocks;
  for (size_t at = page.find(kBegin); at != std::string::npos; at = page.find(kBegin, at)) {
    at += kBegin.size();
    const size_t end = std::min(page.find(kEnd, at), page.size());
    blocks.push_back(page.substr(at, end - at));
    at = end;
  }
  return blocks;
}

TEST(DocumentedCodeTest, PagesShowWhatTheExamplesHave) {
  const fs::path root = RESMGR_SOURCE_DIR;
  std::vector<std::string> sources;
  for (const char* const folder : {"test/examples", "test/integration/stages", "pkg/config"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file()) sources.push_back(ReadAll(entry.path()));
  }
  int blocks = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() != ".md") continue;
    for (const std::string& code : CodeIn(ReadAll(entry.path()))) {
      ++blocks;
      bool found = false;
      for (const std::string& source : sources)
        found = found || source.find(code) != std::string::npos;
      EXPECT_TRUE(found) << entry.path() << " shows what no example has:\n" << code;
    }
  }
  EXPECT_GE(blocks, 4);
}

}  // namespace
}  // namespace resmgr
