// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/percent.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

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

}  // namespace
}  // namespace resmgr
