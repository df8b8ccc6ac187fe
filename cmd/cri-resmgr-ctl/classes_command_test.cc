// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/classes_command.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(ClassesCommandTest, ListsClassesWithTheirContainers) {
  EXPECT_EQ(ClassesText(Reply::array()), "No classes are in use.\n");
  const Reply classes = Reply::parse(
      R"([{"kind":"idle","name":"10us","state":"active","reason":"","containers":["n/p/a","n/p/b"]},
          {"kind":"clock","name":"performance","state":"inactive","reason":"no file",
           "containers":[]}])");
  EXPECT_EQ(ClassesText(classes),
            "KIND   NAME         STATE     CONTAINERS    REASON\n"
            "idle   10us         active    n/p/a, n/p/b  -\n"
            "clock  performance  inactive  -             no file\n");
}

}  // namespace
}  // namespace resmgr
