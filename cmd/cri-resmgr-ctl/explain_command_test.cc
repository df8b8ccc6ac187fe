// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/explain_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ExplainCommandTest, TellsWhichStageSetWhat) {
  Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "hints":[],"candidates":[],"owners":[
        {"field":"cpuset_cpus","key":"","stage":"policy","plugin":""},
        {"field":"environment","key":"A","stage":"nri","plugin":"10-env"},
        {"field":"cpuset_mems","key":"","stage":"policy","plugin":""},
        {"field":"mounts","key":"/data","stage":"nri","plugin":"20-mount"},
        {"field":"environment","key":"B","stage":"nri","plugin":"10-env"}]})");
  const std::string text = ExplanationText(Reply::array({container}));
  EXPECT_THAT(text, HasSubstr("set by policy        cpuset_cpus, cpuset_mems\n"));
  EXPECT_THAT(text, HasSubstr("set by nri 10-env    environment A, environment B\n"));
  EXPECT_THAT(text, HasSubstr("set by nri 20-mount  mounts /data\n"));
  container.erase("owners");
  EXPECT_THAT(ExplanationText(Reply::array({container})), Not(HasSubstr("set by")));
}

}  // namespace
}  // namespace resmgr
