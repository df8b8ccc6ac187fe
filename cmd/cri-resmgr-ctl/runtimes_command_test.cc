// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/runtimes_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(RuntimesCommandTest, ShowsEachAndTheLastErrorsBelow) {
  const Reply runtimes = Reply::parse(R"([
      {"name":"default","socket":"/run/c.sock","version":"containerd 1.7.24","state":"connected",
       "since":"2024-05-06T07:08:09.123Z","handlers":[],"pods":12,"containers":30,"calls":400,
       "errors":3,"lastError":""},
      {"name":"kata","socket":"/run/kata.sock","version":"","state":"away","since":null,
       "handlers":["kata","kata-qemu"],"pods":null,"containers":null,"calls":0,"errors":0,
       "lastError":"no listener"}])");
  EXPECT_EQ(RuntimesText(runtimes),
            "RUNTIME  STATE      SINCE                     VERSION            PODS  CONTAINERS  "
            "CALLS  ERRORS  HANDLERS         SOCKET\n"
            "default  connected  2024-05-06T07:08:09.123Z  containerd 1.7.24  12    30          "
            "400    3       all others       /run/c.sock\n"
            "kata     away       -                         -                  -     -           "
            "0      0       kata, kata-qemu  /run/kata.sock\n"
            "  kata: no listener\n");
  Reply only = Reply::array({runtimes[0]});
  EXPECT_THAT(RuntimesText(only), testing::HasSubstr("  all       /run/c.sock\n"));
  only[0]["calls"] = only[0]["errors"] = nullptr;
  EXPECT_THAT(RuntimesText(only), testing::HasSubstr("  30          -      -       all"));
  only[0]["handlers"] = {"", "runc", "runc-pinned"};
  EXPECT_THAT(RuntimesText(only), testing::HasSubstr("  \"\", runc, runc-pinned  /run/c.sock\n"));
  EXPECT_EQ(RuntimesText(Reply::array()), "no CRI runtimes: the daemon relays no CRI calls\n");
}

}  // namespace
}  // namespace resmgr
