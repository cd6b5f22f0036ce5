import { parseArgs } from 'node:util';

/**
 * Stands in for curl as far as the pages use it, so that tests need none: what it does not know is an error. `ADDRESSES`
 * says, as JSON, what stands here for addresses of the cluster.
 */
const {
  values,
  positionals: [url = '', ...rest],
} = parseArgs({
  allowPositionals: true,
  options: {
    request: { type: 'string', short: 'X' },
    header: { type: 'string', short: 'H', multiple: true, default: [] },
    data: { type: 'string', short: 'd' },
    include: { type: 'boolean', short: 'i' },
    silent: { type: 'boolean', short: 's' },
  },
});
if (rest.length > 0) throw new Error(`more than one address: ${rest.join(' ')}`);

const addresses = JSON.parse(process.env.ADDRESSES ?? '{}') as Record<string, string>;
const headers = values.header.map((header): [string, string] => {
  const [name = '', value = ''] = header.split(/: (.*)/);
  return [name, value];
});
const { request: method, data: body } = values;
const answer = await fetch(addresses[url] ?? url, { headers, ...(method && { method }), ...(body && { body }) });
if (values.include) process.stdout.write(`HTTP/1.1 ${answer.status} ${answer.statusText}\r\n\r\n`);
process.stdout.write(await answer.text());
