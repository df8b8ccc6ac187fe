// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/parse.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pkg/base/append.h"
#include "pkg/base/failure_policy.h"
#include "pkg/base/percent.h"
#include "pkg/base/suggest.h"

namespace resmgr {
namespace {

TEST(ParseTest, NumbersAreWholeOrNothing) {
  EXPECT_EQ(ParseInt("-12"), -12);
  EXPECT_EQ(ParseInt("12 "), std::nullopt);
  EXPECT_EQ(ParseInt(""), std::nullopt);
  EXPECT_EQ(ParseInt("9223372036854775808"), std::nullopt);
  EXPECT_EQ(ParseUint("18446744073709551615"), 18446744073709551615U);
  EXPECT_EQ(ParseUint("-1"), std::nullopt);
  EXPECT_EQ(ParseUint("fF", 16), 255U);
  EXPECT_EQ(ParseUint("fg", 16), std::nullopt);
}

TEST(ParseTest, AnIdHasALimit) {
  EXPECT_EQ(ParseId("0"), 0);
  EXPECT_EQ(ParseId("2147483647"), 2147483647);
  for (const char* const text : {"", "-1", "2147483648", "1 "})
    EXPECT_EQ(ParseId(text), std::nullopt) << text;
  EXPECT_EQ(ParseId("7", 7), 7);
  EXPECT_EQ(ParseId("8", 7), std::nullopt);
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

TEST(PercentTest, DecodesAsTheUrlPartHasIt) {
  EXPECT_EQ(PercentDecoded("a%2Fb%c3%A4+c", UrlPart::kPath), "a/b\xc3\xa4+c");
  EXPECT_EQ(PercentDecoded("a%2Fb+c", UrlPart::kQuery), "a/b c");
  EXPECT_EQ(PercentDecoded("", UrlPart::kPath), "");
  EXPECT_EQ(PercentDecoded("%00", UrlPart::kPath), std::string(1, '\0'));
}

TEST(PercentTest, RefusesWhatIsCutOrNotHexadecimal) {
  for (const char* const text : {"%", "a%", "%1", "%zz", "%1g", "%-1"})
    EXPECT_EQ(PercentDecoded(text, UrlPart::kPath), std::nullopt) << text;
}

TEST(PercentTest, KeepsWhatIsNotAnEscapeWhereItMay) {
  EXPECT_EQ(PercentDecodedLeniently("a%20b%2"), "a b%2");
  EXPECT_EQ(PercentDecodedLeniently("%zz%41%"), "%zzA%");
}

TEST(PercentTest, EncodesWhatUrlsCannotHold) {
  EXPECT_EQ(PercentEncoded("metadata.name=a b/c"), "metadata.name%3Da%20b%2Fc");
  EXPECT_EQ(PercentEncoded("\xff-._~Az09"), "%FF-._~Az09");
}

const std::vector<std::string_view> kKnown = {"Active", "AvailableResources", "ReservedResources",
                                              "static", "static-plus"};

TEST(SuggestTest, FindsTypingMistakesWithoutRegardToCase) {
  EXPECT_EQ(ClosestName("actve", kKnown), "Active");
  EXPECT_EQ(ClosestName("RESERVEDRESOURCE", kKnown), "ReservedResources");
  EXPECT_EQ(ClosestName("staticplus", kKnown), "static-plus");
  EXPECT_EQ(ClosestName("mian", {"side", "main"}), "main") << "exchanged letters are one mistake";
  EXPECT_EQ(ClosestName("nmai", {"side", "main"}), "");
}

TEST(SuggestTest, FindsTheOnlyNameThatTheWordBegins) {
  EXPECT_EQ(ClosestName("avail", kKnown), "AvailableResources");
}

TEST(SuggestTest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(ClosestName("controllers", kKnown), "");
  EXPECT_EQ(ClosestName("", kKnown), "");
  EXPECT_EQ(ClosestName(std::string(100'000, 'a'), kKnown), "");
  EXPECT_EQ(DidYouMean("controllers", kKnown), "");
}

TEST(SuggestTest, WritesTheHintWithItsPrefix) {
  EXPECT_EQ(DidYouMean("activ", kKnown, "-"), "; did you mean -Active?");
}

TEST(AppendTest, PartsFollowWhatATextHas) {
  std::string text = "a";
  AppendParts(text, "b", std::string("cd"), std::string_view(), std::string_view("e"));
  EXPECT_EQ(text, "abcde");
  fmt::memory_buffer buffer;
  AppendParts(buffer, "ab");
  AppendParts(buffer, std::string(1000, 'c'), "d");
  EXPECT_EQ(fmt::to_string(buffer), "ab" + std::string(1000, 'c') + "d");
}

TEST(AppendTest, AssignedPartsLeaveNothingOfALongerOrShorterText) {
  std::string text = "a longer text than its parts";
  AssignParts(text, "b", "/", "c");
  EXPECT_EQ(text, "b/c");
  AssignParts(text, "d", "/", std::string(100, 'e'));
  EXPECT_EQ(text, "d/" + std::string(100, 'e'));
  AssignParts(text, "", "");
  EXPECT_EQ(text, "");
}

TEST(FailurePolicyTest, ReadsBackWhatItPrints) {
  for (const FailurePolicy policy : {FailurePolicy::kFail, FailurePolicy::kIgnore})
    EXPECT_EQ(*ParseFailurePolicy(ToString(policy)), policy);
}

TEST(FailurePolicyTest, CaseDoesNotMatter) {
  EXPECT_EQ(*ParseFailurePolicy("Fail"), FailurePolicy::kFail);
  EXPECT_EQ(*ParseFailurePolicy("IGNORE"), FailurePolicy::kIgnore);
}

TEST(FailurePolicyTest, OtherWordsAreErrors) {
  for (const char* text : {"", "ignored", "true", "fail "})
    EXPECT_EQ(ParseFailurePolicy(text).status().code(), StatusCode::kInvalidArgument) << text;
  EXPECT_EQ(Message(ParseFailurePolicy("perhaps\n").status()),
            "\"perhaps\\x0a\" is not one of fail, ignore");
}

}  // namespace
}  // namespace resmgr
