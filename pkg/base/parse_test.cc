// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/parse.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(ParseTest, NumbersAreWholeOrNothing) {
  EXPECT_EQ(ParseInt("-12"), -12);
  EXPECT_EQ(ParseInt("12 "), std::nullopt);
  EXPECT_EQ(ParseInt(""), std::nullopt);
  EXPECT_EQ(ParseInt("9223372036854775808"), std::nullopt);
  EXPECT_EQ(ParseUint("18446744073709551615"), 18446744073709551615U);
  EXPECT_EQ(ParseUint("-1"), std::nullopt);
}

TEST(ParseTest, BoolsInTheFormsPeopleWrite) {
  EXPECT_EQ(ParseBool("True"), true);
  EXPECT_EQ(ParseBool("off"), false);
  EXPECT_EQ(ParseBool("maybe"), std::nullopt);
}

TEST(ParseTest, SplitKeepsEmptyPieces) {
  EXPECT_EQ(Split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(Split("", ','), std::vector<std::string_view>{""});
}

TEST(ParseTest, TrimTakesBothEnds) {
  EXPECT_EQ(Trim(" \t a b\n"), "a b");
}

TEST(ParseTest, ComparesWithoutCase) {
  EXPECT_TRUE(EqualsIgnoreCase("ReservedResources", "reservedresources"));
  EXPECT_FALSE(EqualsIgnoreCase("a", "ab"));
}

TEST(ParseTest, PlainAsciiHasNoByteThatNeedsEscaping) {
  // Every byte at every place of a text that is read eight bytes at a time, and of its rest.
  for (int byte = 0; byte < 256; ++byte) {
    const bool plain = byte >= 0x20 && byte < 0x7f;
    for (size_t at = 0; at < 19; ++at) {
      for (const char other : {' ', 'a', '~'}) {
        std::string text(19, other);
        text[at] = static_cast<char>(byte);
        EXPECT_EQ(IsPlainAscii(text), plain) << byte << " at " << at;
      }
    }
  }
  EXPECT_TRUE(IsPlainAscii(""));
}

TEST(ParseTest, PrintableHidesControlCharactersAndLength) {
  EXPECT_EQ(Printable("a\nb"), "a\\x0ab");
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
  EXPECT_EQ(Printable("\x1b]0;x\x07\x7f"), "\\x1b]0;x\\x07\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J")
      << "C1: a terminal's CSI in one character";
  EXPECT_EQ(Printable("a\xff\xc3"), "a\\xff\\xc3") << "no UTF-8";
  EXPECT_EQ(Printable("\xc3\xa4\xc3\xb6", 3), "\xc3\xa4...") << "not half a character";
}

}  // namespace
}  // namespace resmgr
