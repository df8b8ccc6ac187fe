// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/json_tree.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr::dump {
namespace {

std::string Shown(const std::string& text, bool secrets = false) {
  return JsonTree(Payload(text), secrets).dump();
}

TEST(JsonTreeTest, SecretsAreHidden) {
  const std::string body = R"({"Env":["TOKEN=abc","PLAIN"],"Labels":{"a":"b",)"
                           R"("annotation.kubectl.kubernetes.io/last-applied-configuration":"m"},)"
                           R"("x":[{"password":"p","Auth":"q","env":"e"}]})";
  EXPECT_EQ(Shown(body),
            R"({"Env":["TOKEN=<redacted>","PLAIN=<redacted>"],"Labels":{"a":"b",)"
            R"("annotation.kubectl.kubernetes.io/last-applied-configuration":"<redacted>"},)"
            R"("x":[{"Auth":"<redacted>","env":"<redacted>","password":"<redacted>"}]})");
  EXPECT_NE(Shown(body, true).find("TOKEN=abc"), std::string::npos);
}

TEST(JsonTreeTest, OptionsOfDriversAreHidden) {
  EXPECT_EQ(Shown(R"({"HostConfig":{"LogConfig":{"Type":"splunk","Config":{"splunk-token":"s",)"
                  R"("splunk-url":"u:p@h"}},"Mounts":[{"Target":"/d","VolumeOptions":{)"
                  R"("DriverConfig":{"Name":"local","Options":{"o":"password=s"}}}}]},)"
                  R"("NetworkingConfig":{"EndpointsConfig":{"n":{"DriverOpts":{"k":"s"}}}}})"),
            R"({"HostConfig":{"LogConfig":{"Config":{"splunk-token":"<redacted>",)"
            R"("splunk-url":"<redacted>"},"Type":"splunk"},"Mounts":[{"Target":"/d",)"
            R"("VolumeOptions":{"DriverConfig":{"Name":"local","Options":{"o":"<redacted>"}}}}]},)"
            R"("NetworkingConfig":{"EndpointsConfig":{"n":{"DriverOpts":{"k":"<redacted>"}}}}})");
  // dockerd compares members' names without case, as Go folds it.
  EXPECT_EQ(Shown(R"({"hostconfig":{"LOGCONFIG":{"config":{"t":"s"}},"x":{"option\u017f":"s"}}})"),
            R"({"hostconfig":{"LOGCONFIG":{"config":{"t":"<redacted>"}},)"
            "\"x\":{\"option\u017f\":\"<redacted>\"}}}");
  EXPECT_EQ(Shown(R"({"LogConfig":{"Config":null},"Config":{"Image":"i"}})"),
            R"({"Config":{"Image":"i"},"LogConfig":{"Config":null}})");
  EXPECT_NE(Shown(R"({"LogConfig":{"Config":{"t":"shown"}}})", true).find("shown"),
            std::string::npos);
}

TEST(JsonTreeTest, SecretsOfSwarmsAndBuildsAreHidden) {
  for (const char* member :
       {R"("Username":"hidden")", R"("X-Registry-Auth":"hidden")", R"("buildargs":{"P":"hidden"})",
        R"("JoinTokens":{"Worker":"hidden"})", R"("JoinToken":"hidden")", R"("UnlockKey":"hidden")",
        R"("SigningCAKey":"hidden")", R"("Data":"hidden")",
        R"("LogDriver":{"Options":{"t":"hidden"}})", R"("DriverOpts":["a=hidden"])",
        R"("Opts":"hidden")", R"("paſſword":"hidden")"}) {
    EXPECT_EQ(Shown(std::string(R"({"a":[{)") + member + "}]}").find("hidden"), std::string::npos)
        << member;
  }
}

TEST(JsonTreeTest, WhatIsNoObject) {
  EXPECT_EQ(Shown(""), "{}");
  EXPECT_EQ(Shown("{\"secret\":"), R"({"undecodable":"10 bytes"})");
  EXPECT_EQ(Shown("[1]"), R"({"value":[1]})");
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + "1" + std::string(levels, ']');
  };
  EXPECT_NE(Shown(nested(150)).find("redacted"), std::string::npos);
  EXPECT_EQ(Shown(nested(500)), R"({"undecodable":"1001 bytes"})");
}

}  // namespace
}  // namespace resmgr::dump
