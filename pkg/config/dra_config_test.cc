// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/dra_config.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/config.h"

namespace resmgr {
namespace {

StatusOr<DraConfig> ReadDraText(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
  return config.dra;
}

TEST(DraConfigTest, IsOffUnlessItIsSaid) {
  for (const std::string_view text : {"", "dra:", "dra: {}"})
    EXPECT_EQ(ReadDraText(text).value(), DraConfig()) << text;
  EXPECT_FALSE(DraConfig().enable);
  EXPECT_EQ(DraConfig().DriverName(), "cpu.cri-resmgr.intel.com");
}

TEST(DraConfigTest, ReadsEveryKey) {
  const DraConfig config =
      ReadDraText("dra: {Enable: true, Driver: cpu.example.com, Compatible: true}").value();
  EXPECT_EQ(config, (DraConfig{.enable = true, .driver = "cpu.example.com", .compatible = true}));
  EXPECT_EQ(config.DriverName(), "dra.cpu") << "manifests of dra-driver-cpu select it";
}

TEST(DraConfigTest, RefusesNamesThatTheApiRefuses) {
  for (const std::string& name : {std::string("'a/b'"), std::string("CPU.example.com"),
                                  std::string("'.'"), std::string(64, 'a'), std::string("''")}) {
    EXPECT_THAT(std::string(Message(ReadDraText("dra: {Driver: " + name + "}").status())),
                testing::HasSubstr("dra.Driver: "))
        << name;
  }
}

}  // namespace
}  // namespace resmgr
