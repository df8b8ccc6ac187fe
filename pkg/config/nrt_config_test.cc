// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/nrt_config.h"

#include <string_view>

#include <gtest/gtest.h>

#include "pkg/config/config.h"

namespace resmgr {
namespace {

StatusOr<NrtConfig> ReadNrtText(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
  return config.nrt;
}

TEST(NrtConfigTest, PublishesUnlessItIsSaid) {
  for (const std::string_view text : {"", "nrt:", "nrt: {}"})
    EXPECT_EQ(ReadNrtText(text).value(), NrtConfig()) << text;
  EXPECT_TRUE(NrtConfig().publish);
  EXPECT_EQ(NrtConfig().alignment, NrtAlignment::kPrefer);
}

TEST(NrtConfigTest, ReadsEveryKey) {
  EXPECT_EQ(ReadNrtText("nrt: {Publish: false, Alignment: Refuse}").value(),
            (NrtConfig{.publish = false, .alignment = NrtAlignment::kRefuse}));
  EXPECT_EQ(Message(ReadNrtText("nrt: {Alignment: strict}").status()),
            "f:1: nrt.Alignment: \"strict\" is not one of prefer, refuse");
}

}  // namespace
}  // namespace resmgr
