// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/terminal.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"

namespace resmgr {
namespace {

// No control characters but line breaks, and whole characters only.
bool FitForATerminal(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    if (text[0] != '\n' && IsControl(text.substr(0, length))) return false;
    text.remove_prefix(length);
  }
  return true;
}

TEST(TerminalTest, LineBreaksStay) {
  EXPECT_EQ(PrintableLines("a\n\tb\n"), "a\n\\x09b\n");
  EXPECT_EQ(PrintableLines(""), "");
}

TEST(TerminalTest, JsonStaysTheSameJson) {
  EXPECT_EQ(PrintableJson("{\"a\":\"\x7f\xc2\x9b\xff\"}\n"), "{\"a\":\"\\u007f\\u009b\\ufffd\"}\n");
}

TEST(TerminalTest, WhateverBytesThereAreNoneOfThemIsObeyed) {
  std::mt19937 random(19);
  std::uniform_int_distribution<int> byte(0, 255);
  std::uniform_int_distribution<int> high(0xc2, 0xf4);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (int i = round % 12; i >= 0; --i)
      text += static_cast<char>(i % 3 == 0 ? high(random) : byte(random));
    const std::string one = Printable(text, static_cast<size_t>(round % 9));
    EXPECT_TRUE(FitForATerminal(one)) << one;
    EXPECT_EQ(one.find('\n'), std::string::npos);
    const std::string table = FormatTable({{text, text}, {text}});
    EXPECT_TRUE(FitForATerminal(table)) << table;
    EXPECT_EQ(Split(table, '\n').size(), 3U) << table;
    EXPECT_TRUE(FitForATerminal(PrintableLines(text)));
    EXPECT_TRUE(FitForATerminal(PrintableJson(text)));
  }
}

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(FormatTable({{"A", "BB", "C"}, {"aaa", "b", "c"}, {"x"}}),
            "A    BB  C\n"
            "aaa  b   c\n"
            "x\n");
  EXPECT_EQ(FormatTable({{"A", "B"}, {"\xc3\xa4\xc3\xb6", "b"}}), "A   B\n\xc3\xa4\xc3\xb6  b\n")
      << "characters count, not bytes";
  EXPECT_EQ(FormatTable({{"A", "B"}, {"漢字", "b"}, {"e\u0301", "b"}}),
            "A     B\n漢字  b\ne\u0301     b\n")
      << "wide characters take two columns, combining ones none";
}

TEST(TableTest, ACellNeitherMovesTheCursorNorAddsALine) {
  EXPECT_EQ(FormatTable({{"A", "B"}, {"x\ny", "\x1b]0;title\x07"}}),
            "A       B\n"
            "x\\x0ay  \\x1b]0;title\\x07\n");
}

TEST(TableTest, ATooWideTableLosesTheEndsOfItsWidestCells) {
  const TableStyle narrow = {.width = 24};
  EXPECT_EQ(
      FormatTable({{"NAME", "CPUS", "STATE"}, {"web", "0,2,4,6,8,10,12,14,16", "running"}}, narrow),
      "NAME  CPUS       STATE\n"
      "web   0,2,4,6,…  running\n");
  EXPECT_EQ(FormatTable({{"A", "B"}, {"x", "y"}}, narrow), "A  B\nx  y\n");
  EXPECT_EQ(FormatTable({{"a long cell", "another one"}}, {.width = 4}), "a long …  another…\n")
      << "some of each cell stays";
  EXPECT_EQ(FormatTable({{"漢字漢字漢字", "b"}}, {.width = 12}), "漢字漢字…  b\n");
  EXPECT_EQ(FormatTable({{"漢字漢字漢字", "b"}}, {.width = 11}), "漢字漢…   b\n")
      << "no half of a character";
}

TEST(TableTest, ColoursTakeNoRoom) {
  const TableStyle style = {
      .colour = [](std::string_view cell) -> std::string_view { return cell == "up" ? "32" : ""; }};
  EXPECT_EQ(FormatTable({{"up", "b"}, {"down", "up"}}, style),
            "\x1b[32mup\x1b[0m    b\ndown  \x1b[32mup\x1b[0m\n");
}

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
