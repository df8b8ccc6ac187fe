// SPDX-License-Identifier: Apache-2.0
// scripts/check-comments finds comment sentences that lack their subject, and the tree has none.
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class CommentsTest : public testing::Test {
 protected:
  // Runs the script on a directory; returns its output and sets passes_.
  std::string Check(const std::string& directory) {
    const std::string command = std::string(RESMGR_SOURCE_DIR "/scripts/check-comments ") +
                                directory + " >" + output_.File("text");
    passes_ = std::system(command.c_str()) == 0;
    return ReadFile(output_.File("text"), size_t{1} << 20).value_or("unread");
  }
  std::string CheckText(std::string_view text) {
    std::ofstream(directory_.File("some.h")) << text;
    return Check(directory_.path());
  }

  TempDir directory_;
  TempDir output_;
  bool passes_ = false;
};

TEST_F(CommentsTest, TheTreeHasNone) {
  EXPECT_THAT(Check(RESMGR_SOURCE_DIR), IsEmpty());
  EXPECT_TRUE(passes_);
}

TEST_F(CommentsTest, FindsEachWordAtTheBeginOfABlock) {
  for (const std::string word : {"Of", "What", "That", "Which", "And", "Nobody", "Everybody"}) {
    EXPECT_THAT(CheckText("int a;\n// " + word + " something.\nint b;\n"),
                HasSubstr("some.h:2: a sentence begins without its subject: " + word));
    EXPECT_FALSE(passes_);
  }
}

TEST_F(CommentsTest, FindsWhatIsNoX) {
  EXPECT_THAT(CheckText("// It is"
                        " no error.\n"),
              HasSubstr("some.h:1: something"));
  EXPECT_THAT(CheckText("// They are\n// no errors.\n"), HasSubstr("some.h:2: something"));
  EXPECT_FALSE(passes_);
  EXPECT_THAT(
      CheckText("// There is no error. It is no longer one.\n// There\n// are no errors.\n"),
      IsEmpty());
  EXPECT_TRUE(passes_);
}

TEST_F(CommentsTest, FindsASentenceWithinABlockAndWithinALine) {
  EXPECT_THAT(CheckText("// A sentence.\n// Of no subject.\n"), HasSubstr("some.h:2:"));
  EXPECT_THAT(CheckText("// A list:\n//   Which is one.\n"), IsEmpty());
  EXPECT_THAT(CheckText("// SPDX-License-Identifier: Apache-2.0\n// What the file does.\n"),
              HasSubstr("some.h:2:"));
  EXPECT_THAT(CheckText("// A sentence (yes). And another one.\n"), HasSubstr("some.h:1:"));
  EXPECT_THAT(CheckText("int a;  /"
                        "/ Of no subject\n"),
              HasSubstr("some.h:1:"));
  EXPECT_THAT(CheckText("int a;  // a\n// Of no subject.\n"), HasSubstr("some.h:2:"));
}

TEST_F(CommentsTest, ALineMayGoOnWithASentence) {
  CheckText(
      "// A container of the class\n// Of Mice, and of the book\n// And Men.\n"
      "int a;  // the book\n"
      "        /"
      "/ Of Mice and Men\n"
      "//\n"
      "// Offers and Andes begin otherwise.\n"
      "const char* text = \"// Of\";\n");
  EXPECT_TRUE(passes_);
}

}  // namespace
}  // namespace resmgr
