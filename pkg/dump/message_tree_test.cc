// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/message_tree.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/dump/event.h"

namespace resmgr::dump {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using nlohmann::json;

TEST(MethodTypesTest, BothVersionsOfTheApiHaveTheSameTypes) {
  for (const std::string version : {"v1", "v1alpha2"}) {
    const MethodTypes types =
        FindMethodTypes("/runtime." + version + ".RuntimeService/GetContainerEvents");
    EXPECT_EQ(types.request, &runtime::v1::GetEventsRequest::default_instance());
    EXPECT_EQ(types.reply, &runtime::v1::ContainerEventResponse::default_instance());
    const MethodTypes pull = FindMethodTypes("/runtime." + version + ".ImageService/PullImage");
    EXPECT_EQ(pull.request, &runtime::v1::PullImageRequest::default_instance());
  }
}

TEST(MethodTypesTest, OtherPathsHaveNone) {
  for (const std::string path :
       {"", "/", "Version", "/runtime.v1.RuntimeService", "/runtime.v1.RuntimeService/",
        "/runtime.v1.RuntimeService/Nope", "/runtime.v2.RuntimeService/Version",
        "/runtime.v1.Other/Version", "/runtime.v1.RuntimeService/Version/x"}) {
    EXPECT_EQ(FindMethodTypes(path).request, nullptr) << path;
    EXPECT_EQ(FindMethodTypes(path).reply, nullptr) << path;
  }
}

TEST(MethodTypesTest, MethodIsTheLastElement) {
  EXPECT_EQ(MethodName("/runtime.v1.RuntimeService/Version"), "Version");
  EXPECT_EQ(MethodName("Version"), "Version");
  EXPECT_EQ(MethodName("/a/"), "");
}

TEST(MessageTreeTest, NamesSetFieldsAsTheProtoTextDoes) {
  runtime::v1::ContainerStatus status;
  status.set_id("c");
  status.set_state(runtime::v1::CONTAINER_EXITED);
  status.set_created_at(1700000000123456789);
  status.set_exit_code(-9);
  auto* mount = status.add_mounts();
  mount->set_readonly(true);
  mount->add_uidmappings()->set_length(65536);
  (*status.mutable_labels())["b.c/d"] = "1";
  status.mutable_user();
  EXPECT_EQ(ToTree(status, false),
            (json{{"id", "c"},
                  {"state", 2},
                  {"created_at", 1700000000123456789},
                  {"exit_code", -9},
                  {"mounts", {{{"readonly", true}, {"uidMappings", {{{"length", 65536}}}}}}},
                  {"labels", {{"b.c/d", "1"}}},
                  {"user", json::object()}}));
}

TEST(MessageTreeTest, BytesAreBase64AndNumbersStayNumbers) {
  runtime::v1::ExecSyncResponse exec;
  exec.set_stdout("hi\n");
  runtime::v1::PsiData psi;
  psi.set_total(18446744073709551615ULL);
  psi.set_avg10(0.25);
  EXPECT_EQ(ToTree(exec, false), (json{{"stdout", "aGkK"}}));
  EXPECT_EQ(ToTree(psi, false), (json{{"Total", 18446744073709551615ULL}, {"Avg10", 0.25}}));
}

runtime::v1::PullImageRequest PullRequest() {
  runtime::v1::PullImageRequest pull;
  pull.mutable_image()->set_image("docker.io/local/busybox:1");
  auto* auth = pull.mutable_auth();
  auth->set_username("user");
  auth->set_password("secret-1");
  auth->set_auth("secret-2");
  auth->set_server_address("registry");
  auth->set_identity_token("secret-3");
  auth->set_registry_token("secret-4");
  (*pull.mutable_sandbox_config()
        ->mutable_annotations())["kubectl.kubernetes.io/last-applied-configuration"] = "secret-5";
  return pull;
}

TEST(MessageTreeTest, RedactsCredentials) {
  const json tree = ToTree(PullRequest(), false);
  EXPECT_EQ(tree["auth"], (json{{"username", "<redacted>"},
                                {"password", "<redacted>"},
                                {"auth", "<redacted>"},
                                {"server_address", "<redacted>"},
                                {"identity_token", "<redacted>"},
                                {"registry_token", "<redacted>"}}));
  EXPECT_THAT(tree.dump(), Not(HasSubstr("secret")));
}

TEST(MessageTreeTest, RedactsEnvironmentButNotItsNames) {
  runtime::v1::CreateContainerRequest create;
  auto* env = create.mutable_config()->add_envs();
  env->set_key("TOKEN");
  env->set_value("secret");
  create.mutable_config()->add_envs()->set_key("EMPTY");
  EXPECT_EQ(ToTree(create, false)["config"]["envs"],
            (json{{{"key", "TOKEN"}, {"value", "<redacted>"}}, {{"key", "EMPTY"}}}));
}

TEST(MessageTreeTest, RedactsVerboseInfo) {
  runtime::v1::ContainerStatusResponse status;
  (*status.mutable_info())["info"] = "{\"config\":{\"envs\":[\"secret\"]}}";
  EXPECT_EQ(ToTree(status, false), (json{{"info", {{"info", "<redacted>"}}}}));
}

TEST(MessageTreeTest, ShowsSecretsWhenAskedTo) {
  const std::string text = ToTree(PullRequest(), true).dump();
  for (const std::string secret : {"secret-1", "secret-2", "secret-3", "secret-4", "secret-5"})
    EXPECT_THAT(text, HasSubstr(secret));
  runtime::v1::KeyValue env;
  env.set_value("secret");
  EXPECT_EQ(ToTree(env, true), (json{{"value", "secret"}}));
  env.set_value("sécret\n");
  EXPECT_EQ(ToTree(env, true), (json{{"value", "sécret\n"}}));
  env.set_value("\xff\xfe");
  EXPECT_EQ(ToTree(env, true), (json{{"value", "//4="}})) << "no text";
}

// Fields 500, 501, 502: a number, two fixed ones, text.
std::string UnknownBytes() {
  google::protobuf::UnknownFieldSet fields;
  fields.AddVarint(500, 7);
  fields.AddFixed32(501, 8);
  fields.AddFixed64(501, 9);
  fields.AddLengthDelimited(502, "secret");
  std::string bytes;
  fields.SerializeToString(&bytes);
  return bytes;
}

TEST(MessageTreeTest, UnknownFieldsAreVisibleWithoutTheirText) {
  runtime::v1::VersionRequest version;
  version.set_version("v");
  ASSERT_TRUE(version.MergeFromString(UnknownBytes()));
  const json tree = ToTree(version, false);
  EXPECT_EQ(tree, (json{{"version", "v"},
                        {"unknown_fields",
                         {"500 varint 7", "501 fixed32 8", "501 fixed64 9", "502 6 bytes"}}}));
  EXPECT_EQ(ToTree(version, true)["unknown_fields"][3], "502 6 bytes c2VjcmV0");
}

TEST(MessageTreeTest, UnknownFieldsOfNestedMessagesAreVisible) {
  runtime::v1::PullImageRequest pull;
  ASSERT_TRUE(pull.mutable_auth()->MergeFromString(UnknownBytes()));
  EXPECT_EQ(ToTree(pull, false)["auth"]["unknown_fields"].size(), 4);
  EXPECT_THAT(ToTree(pull, false).dump(), Not(HasSubstr("c2Vj")));
}

TEST(MessageTreeTest, ManyUnknownFieldsAreSummedUp) {
  google::protobuf::UnknownFieldSet fields;
  for (int i = 0; i < 100; ++i)
    fields.AddVarint(900, 1);
  std::string bytes;
  fields.SerializeToString(&bytes);
  const json list = ToTree(Payload(bytes), nullptr, false)["unknown_fields"];
  EXPECT_EQ(list.size(), 33);
  EXPECT_EQ(list.back(), "and 68 more");
}

TEST(MessageTreeTest, MessageOfUnknownTypeShowsItsFields) {
  EXPECT_EQ(ToTree(Payload(UnknownBytes()), nullptr, false)["unknown_fields"].size(), 4);
  EXPECT_EQ(ToTree(Payload(""), nullptr, false), json::object());
}

TEST(MessageTreeTest, UndecodableBytesAreCounted) {
  const auto* type = &runtime::v1::PullImageRequest::default_instance();
  const std::string garbage = "\x12\x7fsecret";
  EXPECT_EQ(ToTree(Payload(garbage), type, false), (json{{"undecodable", "8 bytes"}}));
  EXPECT_EQ(ToTree(Payload(garbage), nullptr, false), (json{{"undecodable", "8 bytes"}}));
  EXPECT_EQ(ToTree(Payload(garbage), type, true), (json{{"undecodable", "8 bytes En9zZWNyZXQ="}}));
}

TEST(MessageTreeTest, CutMessageShowsItsBeginning) {
  runtime::v1::VersionResponse version;
  version.set_version("0.1.0");
  version.set_runtime_name("a long name that does not fit");
  const std::string bytes = version.SerializeAsString();
  EXPECT_EQ(ToTree(Payload(bytes.substr(0, 12), bytes.size()),
                   &runtime::v1::VersionResponse::default_instance(), false)["version"],
            "0.1.0");
  EXPECT_EQ(ToTree(Payload(bytes.substr(0, 12), bytes.size()),
                   &runtime::v1::VersionResponse::default_instance(), false)["truncated"],
            "the first 12 of " + std::to_string(bytes.size()) + " bytes");
}

TEST(MessageTreeTest, CompressedMessageIsOnlyCounted) {
  Payload payload("secret");
  payload.compressed = true;
  EXPECT_EQ(ToTree(payload, &runtime::v1::PullImageRequest::default_instance(), true),
            (json{{"compressed", "6 bytes"}}));
}

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

TEST(DifferencesTest, NamesEachValueThatIsAnother) {
  const json before = {{"config", {{"linux", {{"resources", {{"cpu_shares", 512}}}}}}},
                       {"pod_sandbox_id", "p1"}};
  json after = before;
  after["config"]["linux"]["resources"]["cpuset_cpus"] = "1";
  after["config"]["linux"]["resources"]["cpu_shares"] = 1024;
  after["pod_sandbox_id"] = "p2";
  EXPECT_THAT(Differences(before, after), ElementsAre("linux.resources.cpu_shares 512 -> 1024",
                                                      R"(linux.resources.cpuset_cpus "" -> "1")",
                                                      R"(pod_sandbox_id "p1" -> "p2")"));
  EXPECT_THAT(Differences(before, before), IsEmpty());
}

TEST(DifferencesTest, ShowsWhatIsNotSetAsProtobufsDefault) {
  EXPECT_THAT(Differences(json::object(), {{"a", {{"b", {{"n", 7}, {"t", true}}}}}}),
              ElementsAre("a.b.n 0 -> 7", "a.b.t false -> true"));
  EXPECT_THAT(Differences({{"l", {1, 2}}}, json::object()), ElementsAre("l [1,2] -> []"));
}

TEST(DifferencesTest, AreFitForALine) {
  EXPECT_THAT(Differences(json::object(), {{"\x1b]0;\n", "\x7f\n"}}),
              ElementsAre("\\x1b]0;\\x0a \"\" -> \"\\u007f\\n\""));
}

}  // namespace
}  // namespace resmgr::dump
