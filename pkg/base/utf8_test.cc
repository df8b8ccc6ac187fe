// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(Utf8Test, TellsCharactersFromOtherBytes) {
  EXPECT_EQ(Utf8Length("a"), 1U);
  EXPECT_EQ(Utf8Length("\xc3\xa4x"), 2U);
  EXPECT_EQ(Utf8Length("\xe2\x82\xac"), 3U);
  EXPECT_EQ(Utf8Length("\xf0\x9f\x98\x80"), 4U);
  for (const char* const none : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3z", "\xe0\x80\x80",
                                 "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xff"}) {
    EXPECT_EQ(Utf8Length(none), 0U) << none;
  }
}

TEST(Utf8Test, TellsWhetherTextIsAscii) {
  EXPECT_TRUE(IsAscii(""));
  EXPECT_TRUE(IsAscii(std::string(40, '\x7f')));
  for (size_t size = 1; size <= 24; ++size) {
    for (size_t at = 0; at < size; ++at) {
      std::string text(size, 'x');
      text[at] = '\x80';
      EXPECT_FALSE(IsAscii(text)) << size << ' ' << at;
    }
  }
}

TEST(Utf8Test, CutsBetweenCharacters) {
  EXPECT_EQ(Utf8Cut("abcdef", 6), "abcdef");
  EXPECT_EQ(Utf8Cut("abcdefg", 6), "abc...");
  EXPECT_EQ(Utf8Cut("ab\xc3\xa4xyz", 6), "ab...");
  EXPECT_EQ(Utf8Cut("a\xc3\xa4xyz.", 6), "a\xc3\xa4...");
  EXPECT_EQ(Utf8Cut("\xf0\x9f\x98\x80xyz", 6), "...");
  EXPECT_EQ(Utf8Cut("\x80\x80\x80\x80\x80\x80\x80", 6), "\x80\x80\x80...") << "no characters";
}

TEST(Utf8Test, ControlsAreWhatATerminalWouldObey) {
  for (const char* const control :
       {"\n", "\x1b", "\x7f", "\xc2\x80", "\xc2\x9b", "\xc2\x9f", "\xe2\x80\xa8", "\xe2\x80\xae",
        "\xe2\x81\xa6", "\xef\xbb\xbf"}) {
    EXPECT_TRUE(IsControl(control)) << control;
  }
  for (const char* const plain : {" ", "~", "\xc2\xa0", "\xc3\xa4", "\xe2\x82\xac"})
    EXPECT_FALSE(IsControl(plain)) << plain;
}

TEST(Utf8Test, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(Utf8Repaired(""), "");
  EXPECT_EQ(Utf8Repaired("a\xc3\xa4"), "a\xc3\xa4");
  EXPECT_EQ(Utf8Repaired("a\xff\xfe"), "a\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(Utf8Repaired("\xc3"), "\xef\xbf\xbd");
  // Wherever it stands in a longer text.
  for (size_t at = 0; at < 20; ++at) {
    const std::string before(at, 'x');
    EXPECT_EQ(Utf8Repaired(before + "\xff" + "yy\xc3\xa4zzzzzzzzz"),
              before + "\xef\xbf\xbd" + "yy\xc3\xa4zzzzzzzzz");
  }
}

}  // namespace
}  // namespace resmgr
