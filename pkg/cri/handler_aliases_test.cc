// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/handler_aliases.h"

#include <string>

#include <gtest/gtest.h>

#include "pkg/state/file_system.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

class HandlerAliasesTest : public testing::Test {
 protected:
  StateStore Open() {
    return {RealFileSystem(), dir_.path(), "machine", [this](std::string_view) { ++reports_; }};
  }

  const TempDir dir_;
  int reports_ = 0;
  const HandlerAliases::Table table_ = {{"pinned", "runc"}, {"quiet", ""}};
};

TEST_F(HandlerAliasesTest, SandboxesHaveTheirAliasesOverRestarts) {
  {
    StateStore state = Open();
    HandlerAliases aliases(table_);
    aliases.Remember(&state);
    aliases.Add(PodSandboxId("one"), "pinned");
    aliases.Add(PodSandboxId("two"), "quiet");
    aliases.Add(PodSandboxId("three"), "quiet");
    aliases.Remove(PodSandboxId("three"));
    EXPECT_EQ(state.size(), 0U) << "they are no containers";
    state.Retain([](std::string_view) { return false; });
    aliases.Remember(nullptr);
    aliases.Add(PodSandboxId("late"), "quiet");
  }
  StateStore state = Open();
  HandlerAliases aliases(table_);
  aliases.Remember(&state);
  EXPECT_EQ(aliases.sandboxes(), 2U);
  EXPECT_EQ(aliases.HandlerOf("one", "runc"), "pinned");
  EXPECT_EQ(aliases.HandlerOf("two", ""), "quiet");
  EXPECT_EQ(aliases.HandlerOf("three", "runc"), "runc");
  EXPECT_EQ(reports_, 0);
}

TEST_F(HandlerAliasesTest, AliasThatIsNotConfiguredAnyMoreIsForgotten) {
  {
    StateStore state = Open();
    HandlerAliases aliases(table_);
    aliases.Remember(&state);
    aliases.Add(PodSandboxId("one"), "pinned");
    aliases.Add(PodSandboxId("two"), "quiet");
  }
  for (const char* time : {"first", "again"}) {
    StateStore state = Open();
    HandlerAliases aliases(HandlerAliases::Table{{"quiet", ""}});
    aliases.Remember(&state);
    EXPECT_EQ(aliases.HandlerOf("one", "runc"), "runc") << time;
    EXPECT_EQ(aliases.HandlerOf("two", ""), "quiet") << time;
  }
  StateStore state = Open();
  EXPECT_FALSE(state.FindNote(StateStore::PodNote::kHandler, PodSandboxId("one")));
}

TEST_F(HandlerAliasesTest, NewSandboxesAreKeptByAListThatBeganBefore) {
  HandlerAliases aliases(table_);
  aliases.Add(PodSandboxId("gone"), "pinned");
  aliases.Add(PodSandboxId("here"), "pinned");
  const HandlerAliases::Moment begin = aliases.Now();
  aliases.Add(PodSandboxId("new"), "pinned");
  aliases.RetainListed({"here", "other"}, begin);
  EXPECT_EQ(aliases.AliasOf("gone"), nullptr);
  EXPECT_NE(aliases.AliasOf("here"), nullptr);
  EXPECT_NE(aliases.AliasOf("new"), nullptr);
}

TEST_F(HandlerAliasesTest, SandboxesAreBounded) {
  HandlerAliases aliases(table_);
  for (size_t i = 0; i <= HandlerAliases::kMostSandboxes; ++i)
    aliases.Add(PodSandboxId(std::to_string(i)), "pinned");
  EXPECT_EQ(aliases.sandboxes(), HandlerAliases::kMostSandboxes);
  EXPECT_EQ(aliases.AliasOf("0"), nullptr);
  EXPECT_NE(aliases.AliasOf("1"), nullptr);
}

TEST_F(HandlerAliasesTest, WhatIsNoAliasIsNotKept) {
  HandlerAliases aliases(table_);
  aliases.Add(PodSandboxId("one"), "runc");
  aliases.Add(PodSandboxId(""), "pinned");
  EXPECT_EQ(aliases.sandboxes(), 0U);
}

}  // namespace
}  // namespace resmgr
