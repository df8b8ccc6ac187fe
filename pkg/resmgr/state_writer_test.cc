// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/state_writer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using test::FakeRuntimeClient;
using test::TestNode;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;
using enum QosClass;

constexpr std::chrono::seconds kSoon{10};

class StateWriterTest : public ::testing::Test {
 protected:
  StateWriterTest() {
    Pod pod;
    pod.id = PodSandboxId("pod");
    pod_ = &containers_.PutPod(pod);
  }

  ContainerRecord& Add(const std::string& id, int64_t shares) {
    ContainerRecord& record = containers_.Add(*pod_, id);
    ContainerId container_id(id);
    containers_.SetId(record, container_id);
    record.container.state = ContainerState::kCreated;
    record.container.requested.cpu_shares = shares;
    return record;
  }
  // Calls that a daemon would find open now.
  size_t OpenCallsOnDisk() const {
    return OpenCalls(RealFileSystem(), dir_.File("calls"), [](std::string_view) {}).size();
  }
  // The shares in the state as it is on the disk now; -1 without a record.
  int64_t SavedShares(const std::string& id) const {
    const StateStore reader(RealFileSystem(), dir_.path(), "machine", [](std::string_view) {});
    const auto saved = reader.Find(ContainerId(id));
    return saved ? saved->requested.cpu_shares.value_or(0) : -1;
  }

  const TempDir dir_;
  EventLoop loop_;
  ContainerStore containers_;
  PodRecord* pod_ = nullptr;
  StateStore state_{RealFileSystem(), dir_.path(), "machine", [](std::string_view) {}};
  StateWriter state_writer_{loop_, &state_, containers_};
};

TEST_F(StateWriterTest, SavesTheLastValueByItself) {
  ContainerRecord& record = Add("a", 2);
  state_writer_.MarkChanged(record);
  record.container.requested.cpu_shares = 1024;
  state_writer_.MarkChanged(record);
  EXPECT_EQ(state_.size(), 0u) << "it may change again";
  EXPECT_TRUE(test::RunUntil(loop_, [this] { return state_.size() > 0; }));
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), 1024);
}

TEST_F(StateWriterTest, FlushingBringsWhatIsGathered) {
  state_writer_.MarkChanged(Add("a", 2));
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), 2);
}

TEST_F(StateWriterTest, StartsAndPodsBringWhatIsGatheredAtOnce) {
  ContainerRecord& record = Add("a", 2);
  state_writer_.MarkChanged(record);
  state_writer_.BeginCall(StateWriter::Call::kUpdate, record.container.id);
  EXPECT_EQ(state_.size(), 0u);
  state_writer_.BeginCall(StateWriter::Call::kStart, record.container.id);
  EXPECT_EQ(state_.size(), 1u) << "without a turn of the loop";
  Pod pod = pod_->pod;
  pod.overhead.memory_limit = 7;
  state_writer_.SaveStated(pod);
  EXPECT_EQ(state_writer_.WithNotes(pod_->pod).overhead.memory_limit, 7);
  state_writer_.ErasePod(pod.id);
  EXPECT_EQ(state_writer_.WithNotes(pod_->pod).overhead.memory_limit, std::nullopt);
}

TEST_F(StateWriterTest, ACreationIsKeptUntilItsContainerIsKnownOrItsPodGone) {
  Container container;
  container.name = "a";
  container.attempt = 3;
  container.requested.cpu_shares = 700;
  const PodSandboxId pod = pod_->pod.id;
  const auto found = [&](const std::string& name, uint32_t attempt) {
    const auto saved = state_writer_.FindCreation(pod, name, attempt);
    return saved ? saved->requested.cpu_shares.value_or(0) : -1;
  };
  state_writer_.SaveCreation(pod_->pod, container, {});
  state_writer_.EraseUnlistedPods();
  EXPECT_EQ(found("a", 3), 700);
  EXPECT_EQ(found("a", 2), -1);
  EXPECT_EQ(found("b", 3), -1);
  Add("a", 2).container.attempt = 3;
  state_writer_.EraseUnlistedPods();
  EXPECT_EQ(found("a", 3), -1) << "it is known by its id";
  container.name = "c";
  state_writer_.SaveCreation(pod_->pod, container, {});
  ContainerRecord& record = Add("c", 7);
  record.container.attempt = 3;
  state_writer_.MarkChanged(record);
  state_writer_.EraseUnlistedPods();
  EXPECT_EQ(found("c", 3), 700) << "its own record is not saved yet";
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(found("c", 3), -1) << "its own record takes the place of the note";
  container.name = "b";
  state_writer_.SaveCreation(pod_->pod, container, {});
  Pod other;
  other.id = PodSandboxId("gone");
  state_writer_.SaveCreation(other, container, {});
  state_writer_.EraseUnlistedPods();
  EXPECT_EQ(found("b", 3), 700);
  EXPECT_FALSE(state_writer_.FindCreation(other.id, "b", 3).has_value());
  container.name = std::string(5000, 'x');
  state_writer_.SaveCreation(pod_->pod, container, {});
  EXPECT_EQ(found(container.name, 3), -1) << "no name of a record is so long";
}

// An event renames the container, and another creation may have its former name.
TEST_F(StateWriterTest, ACreationIsKeptByTheNameThatItAskedFor) {
  Container container;
  container.attempt = 3;
  const auto found = [&](const std::string& name) {
    return state_writer_.FindCreation(pod_->pod.id, name, 3).has_value();
  };
  for (const char* const name : {"a", "b"}) {
    container.name = name;
    state_writer_.SaveCreation(pod_->pod, container, {});
    ASSERT_TRUE(found(name));
  }
  ContainerRecord& a = Add("a", 2);
  a.container.attempt = 3;
  state_writer_.MarkChanged(a);
  containers_.Rename(a, "b");
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_FALSE(found("a"));
  EXPECT_TRUE(found("b")) << "that one is not known yet";
  state_writer_.EraseUnlistedPods();
  EXPECT_TRUE(found("b"));
  container.name = "a";
  state_writer_.SaveCreation(pod_->pod, container, {});
  state_writer_.EraseUnlistedPods();
  EXPECT_FALSE(found("a"));
  // Lists never have such a name.
  container.name = "unnamed-7";
  state_writer_.SaveCreation(pod_->pod, container, {});
  EXPECT_FALSE(found("unnamed-7"));
}

TEST_F(StateWriterTest, WhatEndsAtOnceIsNeverSaved) {
  ContainerRecord& record = Add("a", 2);
  state_writer_.MarkChanged(record);
  record.container.state = ContainerState::kExited;
  state_writer_.Erase(record.container.id);
  containers_.Erase(record.container.key);
  state_writer_.MarkChanged(Add("b", 3));
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), -1);
  EXPECT_EQ(SavedShares("b"), 3);
}

TEST_F(StateWriterTest, WhatWasSavedAndEndsIsForgotten) {
  ContainerRecord& record = Add("a", 2);
  state_writer_.MarkChanged(record);
  ASSERT_TRUE(state_.Flush(kSoon));
  record.container.state = ContainerState::kExited;
  state_writer_.Erase(record.container.id);
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), -1);
}

// The runtime may refuse the update; then the former values must be found after a restart.
TEST_F(StateWriterTest, ValuesBeforeAnUpdateAreSavedAndThoseOfTheUpdateWhenItIsOver) {
  ContainerRecord& record = Add("a", 2);
  state_writer_.MarkChanged(record);
  record.confirmed = std::make_unique<ConfirmedRequest>(
      ConfirmedRequest{record.container.requested, record.container.requirements, std::nullopt});
  record.container.requested.cpu_shares = 1024;
  record.updates.emplace_back();
  state_writer_.SaveUpdate(record);
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), 2);
  ASSERT_TRUE(state_.Find(record.container.id)->asked);
  EXPECT_EQ(state_.Find(record.container.id)->asked->requested.cpu_shares, 1024);
  EXPECT_EQ(record.container.requested.cpu_shares, 1024) << "what is decided about stays";
  record.updates.clear();
  state_writer_.MarkChanged(record);
  ASSERT_TRUE(state_.Flush(kSoon));
  EXPECT_EQ(SavedShares("a"), 1024);
  EXPECT_FALSE(state_.Find(record.container.id)->asked);
}

TEST_F(StateWriterTest, EndsOfCallsAreWrittenAtTheEndOfTheTurn) {
  constexpr StateWriter::Call kUpdate = StateWriter::Call::kUpdate;
  for (const char* const id : {"a", "b", "c"})
    state_writer_.BeginCall(kUpdate, ContainerId(id));
  loop_.Post([this] {
    state_writer_.EndCall(kUpdate, ContainerId("a"));
    state_writer_.EndCall(kUpdate, ContainerId("b"));
    EXPECT_EQ(OpenCallsOnDisk(), 3u);
    loop_.Post([this] { loop_.Stop(); });
  });
  loop_.Run();
  EXPECT_EQ(OpenCallsOnDisk(), 1u);
  // The next ones, too.
  state_writer_.EndCall(kUpdate, ContainerId("c"));
  loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
  EXPECT_EQ(OpenCallsOnDisk(), 0u);
}

TEST_F(StateWriterTest, EndsOfCallsAreWrittenWhenItEnds) {
  auto writer = std::make_unique<StateWriter>(loop_, &state_, containers_);
  writer->BeginCall(StateWriter::Call::kUpdate, ContainerId("a"));
  writer->EndCall(StateWriter::Call::kUpdate, ContainerId("a"));
  writer.reset();
  EXPECT_EQ(OpenCallsOnDisk(), 0u);
  // A task that the writer has posted does nothing.
  loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
}

TEST_F(StateWriterTest, WithoutAStateStoreNothingIsSaved) {
  StateWriter without(loop_, nullptr, containers_);
  ContainerRecord& record = Add("a", 2);
  without.MarkChanged(record);
  without.Erase(record.container.id);
  without.EraseUnlisted();
  EXPECT_FALSE(without.Find(record.container.id));
}

// How often the notes of open calls are written when one decision changes many containers.

// Counts the writes to the file of open calls. The state's other files are written by a thread of
// their own.
class CountingFiles : public FileSystem {
 public:
  explicit CountingFiles(FileSystem& files) : files_(files) {}

  StatusOr<std::string> Read(const std::string& path, size_t limit) override {
    return files_.Read(path, limit);
  }
  StatusOr<std::unique_ptr<File>> Create(const std::string& path) override {
    RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Create(path));
    if (path.find("/calls") == path.npos) return file;
    return std::make_unique<CountingFile>(std::move(file), writes);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  Status Remove(const std::string& path) override { return files_.Remove(path); }
  Status SyncDirectory(const std::string& path) override { return files_.SyncDirectory(path); }
  Status MakeDirectory(const std::string& path) override { return files_.MakeDirectory(path); }

  int writes = 0;

 private:
  class CountingFile : public File {
   public:
    CountingFile(std::unique_ptr<File> file, int& writes)
        : file_(std::move(file)), writes_(writes) {}
    Status Append(std::string_view bytes) override {
      ++writes_;
      return file_->Append(bytes);
    }
    Status Sync() override { return file_->Sync(); }

   private:
    const std::unique_ptr<File> file_;
    int& writes_;
  };

  FileSystem& files_;
};

class GatheredCallsTest : public ::testing::Test {
 protected:
  GatheredCallsTest() {
    node_.KeepState(files_);
    for (const char* const name : {"a", "b", "c", "d"})
      shared_.push_back(node_.Run(name, kBurstable, 100));
    EndTurn();
    files_.writes = 0;
  }

  FakeRuntimeClient& runtime() { return node_.runtime; }

  void EndTurn() {
    node_.loop().Post([this] { node_.loop().Stop(); });
    node_.loop().Run();
  }
  // Updates that a daemon would find open now.
  size_t OpenUpdates() {
    const OpenCalls calls(files_, "/state/calls", [](std::string_view) {});
    return static_cast<size_t>(std::ranges::count_if(shared_, [&calls](const ContainerId& id) {
      return calls.Contains(OpenCalls::Kind::kUpdate, id);
    }));
  }

  test::CrashingFileSystem memory_{1};
  CountingFiles files_{memory_};
  TestNode node_{test::S1Ht(), test::FirstFit};
  std::vector<ContainerId> shared_;
};

TEST_F(GatheredCallsTest, UpdatesOfOneDecisionAreNotedWithOneWriteBeforeTheFirstIsSent) {
  std::vector<size_t> noted;
  runtime().on_update = [&] { noted.push_back(OpenUpdates()); };
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  EXPECT_THAT(noted, ElementsAre(4u, 4u, 4u, 4u));
  EXPECT_EQ(files_.writes, 1);
  runtime().AnswerAll();
  EXPECT_EQ(files_.writes, 1) << "their ends are written when the turn ends";
  EndTurn();
  EXPECT_EQ(files_.writes, 2);
  EXPECT_EQ(OpenUpdates(), 0u);
}

TEST_F(GatheredCallsTest, WhatIsSentAgainAfterAReconnectIsNotedWithOneWrite) {
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  node_.manager().RuntimeDisconnected();
  runtime().DropAll();
  files_.writes = 0;
  std::vector<size_t> noted;
  runtime().on_update = [&] { noted.push_back(OpenUpdates()); };
  node_.manager().RuntimeConnected();
  runtime().AnswerList();
  EXPECT_THAT(runtime().updates, SizeIs(4));
  EXPECT_THAT(noted, Each(4u));
  EXPECT_LE(files_.writes, 1) << "they are open already";
}

// When a change comes while updates are under way, nothing is sent that is under way already.
TEST_F(GatheredCallsTest, ADecisionBetweenUpdatesAndAnswersSendsEachOnce) {
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  ASSERT_TRUE(node_.Create("other", kGuaranteed, 1000).ok());
  EXPECT_THAT(runtime().updates, SizeIs(4));
  files_.writes = 0;
  runtime().AnswerAll();
  EndTurn();
  for (const ContainerId& id : shared_)
    EXPECT_EQ(runtime().CpusOf(id), node_.Placed(id));
  EXPECT_EQ(OpenUpdates(), 0u);
}

}  // namespace
}  // namespace resmgr
