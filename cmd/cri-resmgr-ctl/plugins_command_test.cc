// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/plugins_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(PluginsCommandTest, ShowsThemInTheirOrderAndTheirFailuresBelow) {
  const Reply plugins = Reply::parse(R"([
      {"kind":"nri","name":"logger","index":"10","state":"ready",
       "events":["CreateContainer","StopContainer"],"calls":12,"failures":0,"lastError":"",
       "p50Micros":90},
      {"kind":"hook","name":"koordlet","index":"","state":"failed","events":[],"calls":1,
       "failures":1,"lastError":"no answer","p50Micros":0}])");
  EXPECT_EQ(PluginsText(plugins),
            "PLUGIN     KIND  STATE   CALLS  FAILURES  P50    EVENTS\n"
            "10-logger  nri   ready   12     0         90 us  CreateContainer, StopContainer\n"
            "koordlet   hook  failed  1      1         -      -\n"
            "  koordlet: no answer\n");
  EXPECT_EQ(PluginsText(Reply::array()), "no plugins\n");
}

}  // namespace
}  // namespace resmgr
