// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_format.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(ConfigFormatTest, SectionsMakeYaml) {
  for (const char* text :
       {"policy:\n  Active: static\n", "# comment\n\npolicy:   # which one\n  Active: static\n",
        "logger: {Debug: '*'}\n", "policy.Active: static\n", "Policy.active: static\n",
        "{\"policy\": {\"Active\": \"static\"}}", "---\npolicy: static\n", "%YAML 1.2\n---\n",
        "\"policy\":\n  Active: static\n", "  policy:\n    Active: static\n",
        "plicy:\n  Active: x\n", "policy: &a {Active: static}\n", "policy: ~\n",
        "policy:\r\n  Active: x\r\n", "policy: static\nlogger:\n  Debug: '*'\n",
        "policy:\n  Active: [broken\n"}) {
    EXPECT_EQ(DetectConfigFormat(text), ConfigFormat::kYaml) << text;
  }
}

TEST(ConfigFormatTest, LinesWithValuesAreOptions) {
  for (const char* text :
       {"", "\n\n# nothing\n", "policy null\n", "policy = null\n", "policy: static\n",
        "policy null\ndump reset,full:.*\ndump-file /tmp/cri.dump\n", "dump: reset,full:.*\n",
        "list-policies\n", "relay-socket=/run/a:b.sock\n", "relay-socket unix:///run/a.sock\n",
        "runtime-socket: unix:///run/a.sock\n", "reserved-resources CPU=cgroup:/kubepods\n",
        "dump off:\n", "topology synthetic:numa:2\n", "  policy null\n", "policy\tnull\n"}) {
    EXPECT_EQ(DetectConfigFormat(text), ConfigFormat::kOptions) << text;
  }
}

}  // namespace
}  // namespace resmgr
