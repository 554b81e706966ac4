// Random history of a Master-tree: the records that commits wrote, the part that mappers kept
// (R35), and the expected result.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/compose/snapshot_stage.h"

namespace atolldb::test {

class RandomHistory {
 public:
  explicit RandomHistory(uint64_t seed_value) : random_(seed_value) {}

  uint64_t below(uint64_t bound) { return random_() % bound; }

  /// Makes `operations` changes to the model, in one epoch. Returns sorted log records, as a
  /// reducer has them.
  std::vector<GleanedLog> round(uint64_t operations, uint32_t erase_percent) {
    std::vector<GleanedLog> logs;
    ++epoch;
    const Model before = model;
    for (uint64_t i = 0; i < operations; ++i) {
      const std::string key = below(3) == 0 ? existing_key() : new_key();
      change(key, Vid::make(epoch, i + 1), erase_percent, logs);
    }
    repeat_old(before, logs);
    sort_gleaned(logs);
    drop_covered(logs);
    old_.insert(old_.end(), logs.begin(), logs.end());
    return logs;
  }
  std::vector<GleanedLog> erase_all() {
    std::vector<GleanedLog> logs;
    ++epoch;
    for (const auto& [key, record] : model) {
      logs.push_back({LogType::erase, key, 0, {}, Vid::make(epoch, 1)});
    }
    model.clear();
    return logs;
  }

  std::string existing_key() {
    if (model.empty()) return new_key();
    const auto found = model.lower_bound(new_key());
    return found == model.end() ? model.begin()->first : found->first;
  }
  /// Returns the first keys of 1 to `count` partitions.
  std::vector<std::string> partitions(uint64_t count) {
    std::vector<std::string> lows = {""};
    for (uint64_t i = below(count); i > 0; --i) {
      std::string low = new_key();
      low.resize(8, '\0');
      lows.push_back(low);
    }
    std::ranges::sort(lows);
    const auto same = std::ranges::unique(lows);
    lows.erase(same.begin(), same.end());
    if (lows.size() > 1 && lows[1] == std::string(8, '\0')) lows.erase(lows.begin() + 1);
    return lows;
  }

  Model model;
  uint64_t epoch = 3;
  uint64_t key_space = 2000;

 private:
  std::string new_key() {
    switch (below(4)) {
      case 0:
        return big_endian(below(key_space));
      case 1: {  // short keys of zeros and ones: their slices differ only in length
        std::string key(below(20), '\0');
        for (char& byte : key) byte = static_cast<char>(below(8) == 0);
        return key;
      }
      case 2:  // long common prefixes over several layers
        return std::string(below(2) == 0 ? 31 : 64, 'p') +
               std::to_string(below(key_space / 4 + 1)) + (below(2) == 0 ? "-and more of it" : "");
      default:
        return "user" + std::to_string(below(key_space));
    }
  }

  /// Returns a random payload. Records that share a slice must fit in one page together.
  std::string new_payload(const std::string& key) {
    const bool may_share_slice = key.empty() || key[0] < 'A';
    const uint64_t most = may_share_slice ? 150 : (below(20) == 0 ? 2048 : 300);
    std::string payload(below(3) == 0 ? below(most + 1) : below(20), '\0');
    for (char& byte : payload) byte = static_cast<char>(random_());
    return payload;
  }

  void change(const std::string& key, Vid vid, uint32_t erase_percent,
              std::vector<GleanedLog>& logs) {
    const auto found = model.find(key);
    if (found != model.end() && below(100) < erase_percent) {
      model.erase(found);
      logs.push_back({LogType::erase, key, 0, {}, vid});
      return;
    }
    if (found == model.end() || below(4) == 0) {
      model[key] = {new_payload(key), vid};
      logs.push_back({LogType::insert, key, 0, model[key].payload, vid});
      return;
    }
    std::string& payload = found->second.payload;
    const uint64_t offset = below(payload.size() + 1);
    std::string part(below(payload.size() - offset + 1), '\0');
    for (char& byte : part) byte = static_cast<char>(random_());
    payload.replace(offset, part.size(), part);
    found->second.vid = vid;
    logs.push_back({LogType::update, key, static_cast<uint16_t>(offset), part, vid});
  }

  /// Adds records that the base snapshot already has: a snapshot job may deliver them again.
  void repeat_old(const Model& before, std::vector<GleanedLog>& logs) {
    for (const GleanedLog& log : old_) {
      if (below(10) == 0 && before.contains(log.key)) logs.push_back(log);
    }
    old_.clear();
  }

  /// Drops records that a key's last insert or erase covers: a mapper may elide them.
  void drop_covered(std::vector<GleanedLog>& logs) {
    std::vector<GleanedLog> kept;
    for (size_t i = 0; i < logs.size(); ++i) {
      bool is_covered = false;
      for (size_t later = i + 1; later < logs.size() && logs[later].key == logs[i].key; ++later) {
        is_covered = is_covered || logs[later].type != LogType::update;
      }
      if (!is_covered || below(3) != 0) kept.push_back(logs[i]);
    }
    logs = std::move(kept);
  }

  std::mt19937_64 random_;
  std::vector<GleanedLog> old_;
};

}  // namespace atolldb::test
