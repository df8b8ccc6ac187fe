// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/message_splice.h"

#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/wire.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;

using namespace std::string_literals;
using ::runtime::v1::ContainerConfig;
using ::runtime::v1::CreateContainerRequest;

// Paths in CreateContainerRequest (runtime.v1).
constexpr FieldPath kConfig{2};
constexpr FieldPath kResources{2, 15, 1};
constexpr uint32_t kArgs = 4;
constexpr KeyedField kEnvs{.field = 6, .key = 1};
constexpr KeyedField kMounts{.field = 7, .key = 1};
constexpr uint32_t kLabels = 9;
constexpr KeyedField kLabelEntries{.field = kLabels, .key = 1};
constexpr uint32_t kAnnotations = 10;
constexpr uint32_t kCpuShares = 3;
constexpr uint32_t kCpusetCpus = 6;
constexpr uint32_t kUnified = 9;

CreateContainerRequest SampleRequest() {
  CreateContainerRequest request;
  request.set_pod_sandbox_id("pod");
  ContainerConfig& config = *request.mutable_config();
  config.mutable_metadata()->set_name("main");
  for (const char* arg : {"sleep", "1"})
    config.add_args(arg);
  for (const char* key : {"PATH", "HOME", "LANG"}) {
    auto& env = *config.add_envs();
    env.set_key(key);
    env.set_value("old");
  }
  for (const char* path : {"/etc/hosts", "/data"}) {
    auto& mount = *config.add_mounts();
    mount.set_container_path(path);
    mount.set_host_path("/var/lib/x");
  }
  (*config.mutable_labels())["app"] = "web";
  (*config.mutable_annotations())["note"] = "text";
  config.mutable_linux()->mutable_resources()->set_cpu_shares(1024);
  request.mutable_sandbox_config()->mutable_metadata()->set_name("web");
  return request;
}

std::string Apply(const MessageSplice& splice, std::string_view message) {
  const StatusOr<SplicedMessage> spliced = splice.Apply(message);
  EXPECT_TRUE(spliced.ok()) << Describe(spliced.status());
  if (!spliced.ok()) return "";
  std::string text = spliced->ToString();
  EXPECT_EQ(text.size(), spliced->size());
  return text;
}

// The edits have the same result as protobuf's own parser and setters.
void ExpectBecomes(const MessageSplice& splice, const CreateContainerRequest& expected) {
  CreateContainerRequest result;
  ASSERT_TRUE(result.ParseFromString(Apply(splice, SampleRequest().SerializeAsString())));
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(result, expected)) << difference;
}

TEST(MessageSpliceTest, WithoutEditsMessageIsUnchanged) {
  const std::string message = SampleRequest().SerializeAsString();
  const auto spliced = Must(MessageSplice().Apply(message));
  EXPECT_THAT(spliced.pieces(), testing::ElementsAre(message));
  EXPECT_EQ(spliced.suffix(), "");
}

TEST(MessageSpliceTest, ScalarsAreAppended) {
  MessageSplice splice;
  splice.SetNumber(kResources, kCpuShares, 5);
  splice.SetNumber(kResources, kCpuShares, 512);
  splice.SetBytes(kResources, kCpusetCpus, "0");
  splice.SetBytes(kResources, kCpusetCpus, "1-3");
  CreateContainerRequest expected = SampleRequest();
  expected.mutable_config()->mutable_linux()->mutable_resources()->set_cpu_shares(512);
  expected.mutable_config()->mutable_linux()->mutable_resources()->set_cpuset_cpus("1-3");
  ExpectBecomes(splice, expected);
  const std::string message = SampleRequest().SerializeAsString();
  const auto spliced = Must(splice.Apply(message));
  ASSERT_EQ(spliced.pieces().size(), 2U);
  EXPECT_EQ(spliced.pieces()[0], message);
  EXPECT_EQ(spliced.suffix(), spliced.pieces()[1]);
}

TEST(MessageSpliceTest, NegativeNumberKeepsItsSign) {
  MessageSplice splice;
  splice.SetNumber(kResources, 2, static_cast<uint64_t>(int64_t{-1}));
  CreateContainerRequest expected = SampleRequest();
  expected.mutable_config()->mutable_linux()->mutable_resources()->set_cpu_quota(-1);
  ExpectBecomes(splice, expected);
}

TEST(MessageSpliceTest, ReplacesEntryWhereItStands) {
  MessageSplice splice;
  splice.PutPair(kConfig, kEnvs.field, "HOME", "/a home that is longer than it was");
  CreateContainerRequest expected = SampleRequest();
  expected.mutable_config()->mutable_envs(1)->set_value("/a home that is longer than it was");
  ExpectBecomes(splice, expected);
}

TEST(MessageSpliceTest, AddsEntryThatIsMissing) {
  MessageSplice splice;
  splice.PutPair(kConfig, kEnvs.field, "NEW", "1");
  ::runtime::v1::Mount mount;
  mount.set_container_path("/new");
  splice.Put(kConfig, kMounts, "/new", mount.SerializeAsString());
  splice.PutPair(kResources, kUnified, "memory.high", "1G");
  CreateContainerRequest expected = SampleRequest();
  auto& env = *expected.mutable_config()->add_envs();
  env.set_key("NEW");
  env.set_value("1");
  *expected.mutable_config()->add_mounts() = mount;
  (*expected.mutable_config()
        ->mutable_linux()
        ->mutable_resources()
        ->mutable_unified())["memory.high"] = "1G";
  ExpectBecomes(splice, expected);
}

TEST(MessageSpliceTest, RemovesEntries) {
  MessageSplice splice;
  splice.Remove(kConfig, kEnvs, "PATH");
  splice.Remove(kConfig, kMounts, "/data");
  splice.Remove(kConfig, kLabelEntries, "app");
  splice.Remove(kConfig, kLabelEntries, "missing");
  CreateContainerRequest expected = SampleRequest();
  expected.mutable_config()->mutable_envs()->DeleteSubrange(0, 1);
  expected.mutable_config()->mutable_mounts()->DeleteSubrange(1, 1);
  expected.mutable_config()->mutable_labels()->clear();
  ExpectBecomes(splice, expected);
}

TEST(MessageSpliceTest, ClearsAndReplacesRepeatedStrings) {
  MessageSplice splice;
  splice.Append(kConfig, kArgs, "dropped");
  splice.Clear(kConfig, kArgs);
  splice.Append(kConfig, kArgs, "echo");
  splice.Append(kConfig, kArgs, "");
  CreateContainerRequest expected = SampleRequest();
  expected.mutable_config()->clear_args();
  expected.mutable_config()->add_args("echo");
  expected.mutable_config()->add_args("");
  ExpectBecomes(splice, expected);
}

TEST(MessageSpliceTest, ClearsSubmessageAndFillsItAnew) {
  MessageSplice splice;
  splice.PutPair(kResources, kUnified, "dropped", "with what it is in");
  splice.Clear({2}, 15);
  splice.SetBytes(kResources, kCpusetCpus, "4");
  CreateContainerRequest expected = SampleRequest();
  expected.mutable_config()->clear_linux();
  expected.mutable_config()->mutable_linux()->mutable_resources()->set_cpuset_cpus("4");
  ExpectBecomes(splice, expected);
}

TEST(MessageSpliceTest, LastEditOfEntryCounts) {
  MessageSplice splice;
  splice.PutPair(kConfig, kEnvs.field, "HOME", "1");
  splice.Remove(kConfig, kEnvs, "HOME");
  splice.Remove(kConfig, kEnvs, "LANG");
  splice.PutPair(kConfig, kEnvs.field, "LANG", "C");
  CreateContainerRequest expected = SampleRequest();
  expected.mutable_config()->mutable_envs()->DeleteSubrange(1, 1);
  expected.mutable_config()->mutable_envs(1)->set_value("C");
  ExpectBecomes(splice, expected);
}

TEST(MessageSpliceTest, EqualEntryLeavesBytesAlone) {
  MessageSplice splice;
  splice.PutPair(kConfig, kEnvs.field, "HOME", "old");
  splice.Remove(kConfig, kLabelEntries, "missing");
  splice.Clear(kConfig, 99);
  const std::string message = SampleRequest().SerializeAsString();
  const auto spliced = Must(splice.Apply(message));
  EXPECT_THAT(spliced.pieces(), testing::ElementsAre(message));
}

// Encodings that are valid, but that our protobuf library does not write.
class MessageSpliceBytesTest : public testing::Test {
 protected:
  static std::string Env(std::string_view key, std::string_view value) {
    std::string entry;
    FieldWriter fields(entry);
    fields.Bytes(1, key);
    fields.Bytes(2, value);
    return entry;
  }
  static std::string Field(uint32_t number, std::string_view bytes) {
    std::string field;
    FieldWriter(field).Bytes(number, bytes);
    return field;
  }
};

TEST_F(MessageSpliceBytesTest, EditsEachOccurrenceOfSubmessage) {
  const std::string message = Field(2, Field(6, Env("A", "1")) + Field(6, Env("B", "1"))) +
                              Field(1, "pod") +
                              Field(2, Field(6, Env("A", "2")) + Field(6, Env("C", "1")));
  MessageSplice splice;
  splice.PutPair(kConfig, 6, "A", "new");
  splice.Remove(kConfig, kEnvs, "C");
  // The first is replaced and the other one is removed.
  EXPECT_EQ(Apply(splice, message), Field(2, Field(6, Env("A", "new")) + Field(6, Env("B", "1"))) +
                                        Field(1, "pod") + Field(2, ""));
}

TEST_F(MessageSpliceBytesTest, KeyIsTheLastOneOfItsEntryOrEmpty) {
  const std::string twice = Field(1, "B") + Field(2, "x") + Field(1, "A");
  const std::string none = Field(2, "without a key");
  const std::string message = Field(2, Field(6, twice) + Field(6, none));
  MessageSplice a;
  a.Remove(kConfig, kEnvs, "A");
  EXPECT_EQ(Apply(a, message), Field(2, Field(6, none)));
  MessageSplice b;
  b.Remove(kConfig, kEnvs, "B");
  EXPECT_EQ(Apply(b, message), message);
  MessageSplice empty;
  empty.Remove(kConfig, kEnvs, "");
  EXPECT_EQ(Apply(empty, message), Field(2, Field(6, twice)));
}

TEST_F(MessageSpliceBytesTest, KeepsUnknownFieldsGroupsAndLongVarints) {
  // A group in a group, a fixed64, an overlong tag of two bytes, and an overlong length.
  const std::string group = "\xa3\x06\x08\x01\xab\x06\x10\x02\xac\x06\xa4\x06";
  const std::string fixed =
      "\xa1\x06"
      "12345678";
  const std::string long_tag =
      "\x92\x00\x83\x00"
      "abc"s;
  const std::string before = group + fixed;
  const std::string message =
      long_tag + before + Field(2, before + Field(6, Env("A", "1")) + before) + group;
  MessageSplice splice;
  splice.Remove(kConfig, kEnvs, "A");
  splice.SetNumber({}, 77, 1);
  std::string number;
  FieldWriter(number).Number(77, 1);
  // Field 2 of the long tag is a ContainerConfig, too, but malformed.
  EXPECT_FALSE(splice.Apply(message).ok());
  const std::string other_tag =
      "\x8a\x00\x83\x00"
      "abc"s;
  EXPECT_EQ(Apply(splice, other_tag + message.substr(long_tag.size())),
            other_tag + before + Field(2, before + before) + group + number);
}

TEST_F(MessageSpliceBytesTest, EditedSubmessageKeepsItsTag) {
  // config with a tag and a length of two bytes each.
  const std::string env = Field(6, Env("A", "1"));
  const std::string head = "\x92\x00"s;
  const auto size = static_cast<char>(env.size());
  const std::string message = head + static_cast<char>(size | 0x80) + '\0' + env;
  MessageSplice same_length;
  same_length.PutPair(kConfig, 6, "A", "2");
  EXPECT_EQ(Apply(same_length, message),
            head + static_cast<char>(size | 0x80) + '\0' + Field(6, Env("A", "2")));
  MessageSplice longer;
  longer.PutPair(kConfig, 6, "A", "22");
  EXPECT_EQ(Apply(longer, message), head + static_cast<char>(size + 1) + Field(6, Env("A", "22")));
}

TEST_F(MessageSpliceBytesTest, FieldOfAnotherTypeIsNoEntry) {
  std::string message;
  {
    FieldWriter fields(message);
    fields.Number(2, 7);
    fields.Bytes(2, Field(6, Env("A", "1")));
  }
  MessageSplice splice;
  splice.Remove(kConfig, kEnvs, "A");
  std::string expected;
  {
    FieldWriter fields(expected);
    fields.Number(2, 7);
    fields.Bytes(2, "");
  }
  EXPECT_EQ(Apply(splice, message), expected);
}

TEST_F(MessageSpliceBytesTest, MalformedMessageIsInvalidArgument) {
  const std::string cut =
      "\x0a\x05"
      "abc"s;
  MessageSplice splice;
  splice.SetBytes({}, 1, "x");
  EXPECT_EQ(splice.Apply(cut).status().code(), StatusCode::kInvalidArgument);
  splice.Remove(kConfig, kEnvs, "A");
  EXPECT_EQ(splice.Apply(Field(2, cut)).status().code(), StatusCode::kInvalidArgument);
  const std::string cut_entry = Env("A", "1") + cut;
  EXPECT_EQ(splice.Apply(Field(2, Field(6, cut_entry))).status().code(),
            StatusCode::kInvalidArgument);
  // A part that no edit can concern is not checked.
  EXPECT_TRUE(splice.Apply(Field(2, Field(7, cut_entry))).ok());
  EXPECT_TRUE(splice.Apply(Field(2, Field(6, cut))).ok());
}

TEST_F(MessageSpliceBytesTest, LongMessageIsNotCopied) {
  const std::string config = Field(6, Env("A", std::string(size_t{2} << 20, 'a'))) +
                             Field(6, Env("B", "1")) +
                             Field(6, Env("C", std::string(size_t{2} << 20, 'c')));
  const std::string message = Field(2, config);
  MessageSplice splice;
  splice.PutPair(kConfig, 6, "B", "new");
  const auto spliced = Must(splice.Apply(message));
  size_t own = 0;
  for (const std::string_view piece : spliced.pieces()) {
    const bool in_message =
        piece.data() >= message.data() && piece.data() < message.data() + message.size();
    if (!in_message) own += piece.size();
  }
  EXPECT_LT(own, 64U);
  EXPECT_LE(spliced.pieces().size(), 6U);
}

}  // namespace
}  // namespace resmgr
