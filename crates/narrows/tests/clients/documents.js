// What users of @opensearch-project/opensearch and of @elastic/elasticsearch do: documents.js PACKAGE URL
// Prints what it did as a line of JSON, or ends with the assertion that does not hold.
'use strict';
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const [name, node] = process.argv.slice(2);
const library = require(name);
const { version } = JSON.parse(readFileSync(`${process.env.NODE_PATH}/${name}/package.json`));

const index = 'documents-of-js';
const properties = { n: { type: 'long' }, word: { type: 'keyword' }, note: { type: 'text' } };
const did = [];
// What was answered: elasticsearch 8 returns it as it is, and the others as the body of what they return.
const said = async (asked) => (await asked).body ?? asked;

async function main() {
  const client = new library.Client({ node, requestTimeout: 30000 });
  const settings = { number_of_shards: 2, number_of_replicas: 1 };
  const made = await said(client.indices.create({ index, body: { settings, mappings: { properties } } }));
  assert(made.acknowledged);
  assert.equal(await said(client.indices.exists({ index })), true);
  const mapping = await said(client.indices.getMapping({ index }));
  assert.deepEqual(mapping[index].mappings.properties, properties);
  did.push('create index');

  const health = await said(client.cluster.health({ index, wait_for_status: 'green' }));
  assert.deepEqual([health.status, health.number_of_nodes], ['green', 2]);
  did.push('cluster health');

  const datasource = Array.from({ length: 100 }, (_, n) => ({ n, word: `w${n % 5}`, note: `number ${n}` }));
  const stats = await client.helpers.bulk({
    datasource,
    flushBytes: 2000,
    onDocument: (doc) => ({ index: { _index: index, _id: String(doc.n) } }),
    onDrop: (doc) => assert.fail(JSON.stringify(doc)),
  });
  assert.deepEqual([stats.total, stats.successful, stats.failed], [100, 100, 0]);
  did.push('bulk');

  const refreshed = (await said(client.indices.refresh({ index })))._shards;
  assert.deepEqual(refreshed, { total: 4, successful: 4, failed: 0 });
  assert.equal((await said(client.count({ index }))).count, 100);
  did.push('refresh');

  const query = { range: { n: { gte: 90 } } };
  const { hits } = await said(client.search({ index, body: { query, sort: [{ n: 'desc' }], size: 3 } }));
  assert.deepEqual(hits.total, { value: 10, relation: 'eq' });
  assert.deepEqual(hits.hits.map((hit) => hit._source.n), [99, 98, 97]);
  did.push('search');

  const aggregations = { words: { terms: { field: 'word' }, aggs: { mean: { avg: { field: 'n' } } } } };
  const { buckets } = (await said(client.search({ index, body: { size: 0, aggregations } }))).aggregations.words;
  const found = buckets.map((bucket) => [bucket.key, bucket.doc_count, bucket.mean.value]).sort();
  assert.deepEqual(found, [0, 1, 2, 3, 4].map((k) => [`w${k}`, 20, 47.5 + k]));
  did.push('aggregate');

  const got = await said(client.get({ index, id: '7' }));
  assert.deepEqual(got._source, { n: 7, word: 'w2', note: 'number 7' });
  did.push('get');

  const updated = await said(client.update({ index, id: '7', body: { doc: { n: 700 } } }));
  assert.deepEqual([updated.result, updated._version], ['updated', 2]);
  assert.equal((await said(client.get({ index, id: '7' })))._source.n, 700);
  did.push('update');

  const scanned = new Set();
  const text = { query: { match: { note: 'number' } } };
  for await (const page of client.helpers.scrollSearch({ index, size: 30, body: text })) {
    page.body.hits.hits.forEach((hit) => scanned.add(hit._id));
  }
  assert.equal(scanned.size, 100);
  did.push('scroll');
  const newer = await atOnce(client);

  assert.equal((await said(client.delete({ index, id: '8' }))).result, 'deleted');
  assert.equal(await said(client.exists({ index, id: '8' })), false);
  did.push('delete by id');

  const wrong = (status, type) => (error) => {
    assert(error instanceof library.errors.ResponseError, error);
    assert.deepEqual([error.statusCode, error.body.error.type], [status, type]);
    return true;
  };
  await assert.rejects(client.search({ index: 'no-such-index' }), wrong(404, 'index_not_found_exception'));
  const again = client.create({ index, id: '7', body: {} });
  await assert.rejects(again, wrong(409, 'version_conflict_engine_exception'));
  did.push('error');

  assert((await said(client.indices.delete({ index }))).acknowledged);
  assert.equal(await said(client.indices.exists({ index })), false);
  did.push('delete index');
  await client.close();
  console.log(JSON.stringify({ version, did, newer }));
}

// Many documents in one request, templates, and searches of one moment.
async function atOnce(client) {
  const copy = `${index}-copy`;
  const did = [];
  const mappings = { properties: { n: { type: 'long' }, word: { type: 'keyword' } } };
  const template = { index_patterns: [`${index}-*`], template: { mappings } };
  const put = await said(client.indices.putIndexTemplate({ name: 'of-js', body: template }));
  assert(put.acknowledged);
  did.push('template');

  await client.indices.refresh({ index });
  const body = { source: { index, _source: ['n', 'word'] }, dest: { index: copy } };
  const made = await said(client.reindex({ refresh: true, body }));
  assert.deepEqual([made.created, made.failures], [100, []]);
  const shown = (await said(client.indices.getMapping({ index: copy })))[copy].mappings;
  assert.deepEqual(shown.properties, mappings.properties);
  did.push('reindex');

  const { fields } = await said(client.fieldCaps({ index: `${index}*`, fields: 'n*' }));
  assert.deepEqual([Object.keys(fields).sort(), fields.n.long.aggregatable], [['n', 'note'], true]);
  did.push('field capabilities');

  const isOpenSearch = name.includes('opensearch');
  const moment = isOpenSearch
    ? (await said(client.createPit({ index: copy, keep_alive: '1m' }))).pit_id
    : (await said(client.openPointInTime({ index: copy, keep_alive: '1m' }))).id;
  const query = { range: { n: { gte: 90 } } };
  const gone = await said(client.deleteByQuery({ index: copy, refresh: true, body: { query } }));
  assert.equal(gone.deleted, 11);
  did.push('delete by query');

  const seen = [];
  const page = { size: 33, sort: ['n'], pit: { id: moment, keep_alive: '1m' } };
  for (;;) {
    const { hits } = (await said(client.search({ body: page }))).hits;
    if (hits.length === 0) break;
    seen.push(...hits.map((hit) => hit._source.n));
    page.search_after = hits.at(-1).sort;
  }
  assert.deepEqual(seen, [...Array(100).keys()].filter((n) => n !== 7).concat(700));
  if (isOpenSearch) {
    const ended = (await said(client.deletePit({ body: { pit_id: [moment] } }))).pits;
    assert.deepEqual(ended, [{ successful: true, pit_id: moment }]);
  } else {
    assert((await said(client.closePointInTime({ body: { id: moment } }))).succeeded);
  }
  did.push('point in time');

  const updated = await said(client.updateByQuery({ index: copy, q: 'word:w1', refresh: true }));
  assert.deepEqual([updated.updated, (await said(client.count({ index: copy }))).count], [18, 89]);
  did.push('update by query');

  assert((await said(client.indices.delete({ index: copy }))).acknowledged);
  assert((await said(client.indices.deleteIndexTemplate({ name: 'of-js' }))).acknowledged);
  return did;
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
