// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/terminal.h"

#include <random>

#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/base/table.h"
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

}  // namespace
}  // namespace resmgr
