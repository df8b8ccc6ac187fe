// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/quantity.h"

#include <limits>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

int64_t Milli(std::string_view text) {
  const StatusOr<MilliCpu> value = ParseMilliCpu(text);
  EXPECT_TRUE(value.ok()) << Describe(value.status());
  return value.ok() ? value->value : -1;
}

int64_t InBytes(std::string_view text) {
  const StatusOr<Bytes> value = ParseBytes(text);
  EXPECT_TRUE(value.ok()) << Describe(value.status());
  return value.ok() ? value->value : -1;
}

TEST(QuantityTest, ReadsCpus) {
  EXPECT_EQ(Milli("2"), 2000);
  EXPECT_EQ(Milli("750m"), 750);
  EXPECT_EQ(Milli("0.5"), 500);
  EXPECT_EQ(Milli(".5"), 500);
  EXPECT_EQ(Milli("3."), 3000);
  EXPECT_EQ(Milli("+1"), 1000);
  EXPECT_EQ(Milli("0"), 0);
  EXPECT_EQ(Milli("000.000"), 0);
  EXPECT_EQ(Milli("1k"), 1'000'000);
}

TEST(QuantityTest, ReadsBytes) {
  EXPECT_EQ(InBytes("128974848"), 128974848);
  EXPECT_EQ(InBytes("129e6"), 129'000'000);
  EXPECT_EQ(InBytes("129M"), 129'000'000);
  EXPECT_EQ(InBytes("123Mi"), 128974848);
  EXPECT_EQ(InBytes("1.5Gi"), 1610612736);
  EXPECT_EQ(InBytes("2E"), 2'000'000'000'000'000'000);
  EXPECT_EQ(InBytes("7Ei"), int64_t{7} << 60);
  EXPECT_EQ(InBytes("2E1"), 20);
  EXPECT_EQ(InBytes("2e+1"), 20);
  EXPECT_EQ(InBytes("2000E-2"), 20);
  EXPECT_EQ(InBytes("128974848000m"), 128974848);
}

TEST(QuantityTest, EverySuffixHasItsPower) {
  int64_t decimal = 1;
  for (const char* suffix : {"", "k", "M", "G", "T", "P", "E"}) {
    EXPECT_EQ(InBytes(fmt::format("3{}", suffix)), 3 * decimal) << suffix;
    if (decimal < 1'000'000'000'000'000'000) decimal *= 1000;
  }
  int64_t binary = 1;
  for (const char* suffix : {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}) {
    EXPECT_EQ(InBytes(fmt::format("3{}", suffix)), 3 * binary) << suffix;
    if (binary < int64_t{1} << 60) binary *= 1024;
  }
}

TEST(QuantityTest, RestsBelowTheUnitRoundUp) {
  EXPECT_EQ(Milli("0.0001"), 1);
  EXPECT_EQ(Milli("1.0001"), 1001);
  EXPECT_EQ(Milli("1n"), 1);
  EXPECT_EQ(Milli("1001u"), 2);
  EXPECT_EQ(Milli("1e-1000"), 1);
  EXPECT_EQ(Milli("0e-1000"), 0);
  EXPECT_EQ(InBytes("0.1"), 1);
  EXPECT_EQ(InBytes("1.1Ki"), 1127);  // 1126.4
}

TEST(QuantityTest, PartsOfAByteAreNotConfigured) {
  EXPECT_EQ(ParseConfiguredBytes("1.1Gi")->value, 1181116007);
  EXPECT_EQ(ParseConfiguredBytes("64M")->value, 64'000'000);
  EXPECT_EQ(ParseConfiguredBytes("1")->value, 1);
  EXPECT_EQ(ParseConfiguredBytes("0")->value, 0);
  EXPECT_EQ(ParseConfiguredBytes("1.5")->value, 2);
  for (const char* text : {"64m", "1000m", "1u", "5n", "0m", "M", "0.5", "1e-3", "0.0001Ki"})
    EXPECT_EQ(ParseConfiguredBytes(text).status().code(), StatusCode::kInvalidArgument) << text;
}

TEST(QuantityTest, IsExactUpToTheLastBit) {
  EXPECT_EQ(InBytes("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(InBytes("9223372036854775.807k"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(InBytes("7.999999999999999999Ei"), 9223372036854775807);
  EXPECT_EQ(Milli("9223372036854775.807"), std::numeric_limits<int64_t>::max());
}

TEST(QuantityTest, RefusesWhatLeaves64Bits) {
  for (const char* text : {"9223372036854775808", "8Ei", "10E", "1e19", "1e1000", "1e99999999"}) {
    const Status status = ParseBytes(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(std::string(Message(ParseBytes("8Ei").status())), HasSubstr("too large"));
  EXPECT_FALSE(ParseMilliCpu("9223372036854776").ok());
  EXPECT_FALSE(ParseBytes("12345678901234567890123").ok());
}

TEST(QuantityTest, RefusesOtherText) {
  for (const char* text : {"",      " 1",   "1 ",    "m",   ".",
                           "-1",    "1K",   "1KI",   "1mi", "1Mib",
                           "1.2.3", "e3",   "1e",    "1e+", "1e+-3",
                           "1e3m",  "0x10", "1_000", "one", "1e99999999999999999999",
                           "nan",   "inf"}) {
    EXPECT_EQ(ParseMilliCpu(text).status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(ParseBytes(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(QuantityTest, ErrorsSayWhatAndWhy) {
  EXPECT_EQ(Message(ParseMilliCpu("1K").status()),
            "\"1K\" is not a quantity: no unit is called \"K\"");
  EXPECT_EQ(Message(ParseMilliCpu("-1").status()),
            "\"-1\" is not a quantity: it must not be negative");
}

TEST(QuantityTest, MilliCpusSurviveFormatAndParse) {
  EXPECT_EQ(FormatMilliCpu(MilliCpu{2000}), "2");
  EXPECT_EQ(FormatMilliCpu(MilliCpu{750}), "750m");
  EXPECT_EQ(FormatMilliCpu(MilliCpu{0}), "0");
  for (int64_t milli = 0; milli <= 300'000; ++milli)
    ASSERT_EQ(Milli(FormatMilliCpu(MilliCpu{milli})), milli);
}

TEST(QuantityTest, DecimalFormsOfEveryMilliValueAgree) {
  for (int64_t milli = 0; milli <= 20'000; ++milli) {
    ASSERT_EQ(Milli(fmt::format("{}.{:03}", milli / 1000, milli % 1000)), milli);
    ASSERT_EQ(Milli(fmt::format("{}e-3", milli)), milli);
    ASSERT_EQ(Milli(fmt::format("{}000u", milli)), milli);
  }
}

TEST(QuantityTest, CanonicalTextIsThatOfKubernetes) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"0", "0"},
      {"0Ki", "0"},
      {"000.0", "0"},
      {"2", "2"},
      {"0.5", "500m"},
      {".5", "500m"},
      {"1.50", "1500m"},
      {"1000m", "1"},
      {"1500m", "1500m"},
      {"2000", "2k"},
      {"1000000", "1M"},
      {"12345", "12345"},
      {"128974848", "128974848"},
      {"1024", "1024"},
      {"1024Mi", "1Gi"},
      {"1536Mi", "1536Mi"},
      {"1.5Gi", "1536Mi"},
      {"0.5Ki", "512"},
      {"0.1Ki", "102400m"},
      {"1.1Ki", "1127"},
      {"1Ei", "1Ei"},
      {"2048Ei", "2048Ei"},
      {"1e3", "1e3"},
      {"1e4", "10e3"},
      {"1e40", "10e39"},
      {"12E2", "1200"},
      {"5e-1", "500e-3"},
      {"1n", "1n"},
      {"1.0000000001", "1000000001n"},
      {"100E", "100E"},
      {"1000E", "1000E"},
      {"100k", "100k"},
      {"250u", "250u"},
      {"+3", "3"},
  };
  for (const auto& [text, canonical] : kCases) {
    const StatusOr<std::string> value = CanonicalQuantity(text);
    ASSERT_TRUE(value.ok()) << text << ": " << Describe(value.status());
    EXPECT_EQ(*value, canonical) << text;
    EXPECT_EQ(CanonicalQuantity(*value).value_or("error"), canonical) << text;
  }
}

TEST(QuantityTest, CanonicalTextOfWhatIsNoQuantityIsAnError) {
  for (const char* text : {"", "-1", "1K", "99999999999999999999E", "12345678901234567890"}) {
    EXPECT_EQ(CanonicalQuantity(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(QuantityTest, CanonicalTextKeepsTheValue) {
  for (int64_t milli = 0; milli <= 70'000; ++milli) {
    const std::string text = fmt::format("{}.{:03}", milli / 1000, milli % 1000);
    const StatusOr<std::string> canonical = CanonicalQuantity(text);
    ASSERT_TRUE(canonical.ok()) << text;
    ASSERT_EQ(Milli(*canonical), milli) << text;
  }
}

std::optional<int64_t> Read(std::string_view text) {
  const auto duration = ParseDuration(text, std::chrono::hours(1));
  if (!duration) return std::nullopt;
  return duration->count();
}

TEST(DurationTest, SumsItsParts) {
  EXPECT_EQ(Read("500ms"), 500);
  EXPECT_EQ(Read("0s"), 0);
  EXPECT_EQ(Read("90s"), 90'000);
  EXPECT_EQ(Read("1m30s"), 90'000);
  EXPECT_EQ(Read("59m60s"), 3'600'000);
  EXPECT_EQ(Read("1h"), 3'600'000);
}

TEST(DurationTest, HasFractionsAsGoHas) {
  EXPECT_EQ(Read("1.5s"), 1500);
  EXPECT_EQ(Read(".5s"), 500);
  EXPECT_EQ(Read("2.s"), 2000);
  EXPECT_EQ(Read("1m0.25s"), 60'250);
  EXPECT_EQ(Read("0.1h"), 360'000);
  EXPECT_EQ(Read("0.0015s"), 1);
  EXPECT_EQ(Read("1.9ms"), 1);
  EXPECT_EQ(Read("0.99999999999999999999999999h"), 3'599'999);
  EXPECT_EQ(Read("1.0h"), 3'600'000);
  EXPECT_EQ(Read("1.001h"), std::nullopt);
  EXPECT_EQ(Read("0"), 0);
}

TEST(DurationTest, IsWrittenAsItIsRead) {
  for (const char* const text : {"0s", "1ms", "1500ms", "2s", "90s", "2m", "1h"}) {
    EXPECT_EQ(DurationText(std::chrono::milliseconds(Read(text).value_or(-1))), text);
  }
}

TEST(DurationTest, RefusesEverythingElse) {
  for (const char* const text : {"",
                                 "60",
                                 "s",
                                 "-5s",
                                 "+5s",
                                 "1x",
                                 "5s ",
                                 " 5s",
                                 ".s",
                                 "1.5",
                                 "1.5.5s",
                                 "1,5s",
                                 "1e3s",
                                 "-0.5s",
                                 "00",
                                 "1h1ms",
                                 "9999999999999h",
                                 "99999999999999999999s",
                                 "1d",
                                 "1s1"}) {
    EXPECT_EQ(Read(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace resmgr
