/** What is done to all jobs that match a filter: counted by the request that will act, page by page, and stopped at once. */

import { begin, open } from './actions.js';
import { Problem, request } from './api.js';
import { say } from './dialogs.js';
import { bulk, parsed } from './filter.js';
import { count, number, text } from './format.js';
import { html, nothing } from './lit-html.js';
import { badge, jobLink } from './parts.js';
import { place } from './router.js';
import { signal } from './signals-core.js';

/** What can be done to many jobs, and to those of which states. */
export const OPERATIONS = /** @type {const} */ ([
	{
		name: 'reprioritise',
		label: 'Set priority of',
		needs: 'control',
		states: ['available', 'scheduled', 'pending'],
		done: 'reprioritised',
	},
	{ name: 'retry', label: 'Retry', needs: 'control', states: ['discarded', 'cancelled', 'retryable'], done: 'retried' },
	{
		name: 'cancel',
		label: 'Cancel',
		needs: 'control',
		states: ['available', 'scheduled', 'pending', 'retryable'],
		done: 'cancelled',
	},
	{ name: 'delete', label: 'Delete', needs: 'destroy', states: ['completed', 'cancelled', 'discarded'], done: 'deleted' },
]);

/** @typedef {(typeof OPERATIONS)[number]} Operation */
/** @typedef {import('./openapi.js').Sent<import('./openapi.js').AdminBulkRetryBody>} Body */
/**
 * How far an operation is. `uncertain`: a request got no answer, so more may be done than is counted.
 * @typedef {{operation: Operation, done: number, failed: number, matched: number, uncertain: boolean, problem: string,
 *   state: 'working' | 'stopping' | 'stopped' | 'done', refusals: readonly string[]}} Progress
 */

/** @type {import('./actions.js').Field} */
export const PRIORITY = {
	name: 'priority',
	label: 'Priority, from -100 to 100',
	kind: 'number',
	value: '0',
	min: -100,
	max: 100,
};
/** What an operation asks for besides the jobs. */
export const asksFor = (/** @type {Operation} */ operation) => (operation.name === 'reprioritise' ? [PRIORITY] : []);
/** The members of the request that what was typed becomes. */
export const typed = (/** @type {Operation} */ operation, /** @type {import('./actions.js').Values} */ values) =>
	operation.name === 'reprioritise' ? { priority: Number(values['priority']) } : {};

/** Jobs of one request: so few that it ends within a second, and *Stop* is heard. */
const PAGE = 200;
const MOST_REFUSALS = 20;

/** What works on all that match: one at a time, and on when the page is left. */
const running = signal(/** @type {Progress | null} */ (null));
let stopping = new AbortController();
const works = () => running.peek()?.state === 'working' || running.peek()?.state === 'stopping';

addEventListener('beforeunload', (event) => {
	if (works()) event.preventDefault();
});

/** Ask the server what the request would do; then show that, and do it once it is confirmed. */
export async function ofAll(/** @type {Operation} */ operation, /** @type {string} */ line, /** @type {() => void} */ after) {
	if (works()) return say('Something works on jobs already: wait for its end, or stop it.', { bad: true });
	const filter = parsed(line);
	if (filter.problems.length) return;
	const [here, made] = [place.peek(), bulk(filter)];
	const asked = { filter: { ...made, ...('state' in made ? {} : { states: operation.states }) } };
	const call = /** @type {const} */ (`POST /admin/jobs/bulk/${operation.name}`);
	say('Counting the jobs that match…');
	try {
		const dry = await request({ call, body: { ...asked, dry_run: true } });
		if (place.peek() !== here || open.peek()) return; // somebody has gone on to something else
		const most = dry.succeeded + (dry.remaining ?? 0);
		const states = 'state' in made ? '' : ` and are ${operation.states.join(', ').replace(/, (\w+)$/, ' or $1')}`;
		begin({
			label: `${operation.label} all that match`,
			needs: operation.needs,
			call,
			danger: operation.name === 'delete',
			fields: asksFor(operation),
			body: (values) => ({ ...asked, confirm: true, limit: PAGE, ...typed(operation, values) }),
			run: async (values) => {
				carryOut(operation, { ...asked, confirm: true, limit: PAGE, ...typed(operation, values) }, most).finally(after);
			},
			typed: most > 100 ? String(most) : '',
			about: html`<p>${count(most, 'job')} would be ${operation.done}: those that fit <code>${line || 'no filter: all jobs'}</code>${states}.</p>
				${dry.errors[0] ? html`<p>${count(dry.failed, 'job')} would be skipped: ${text(dry.errors[0].error)}</p>` : nothing}
				<ul>${(dry.sample ?? []).map((job) => html`<li>${jobLink(job.id)} ${text(job.type, 60)} ${badge(job.state)}</li>`)}</ul>`,
			done: () => `Working on ${count(most, 'job')}…`,
		});
	} catch (error) {
		say(error instanceof Problem ? error.whole : String(error), { bad: true });
	}
}

async function carryOut(/** @type {Operation} */ operation, /** @type {Body} */ body, /** @type {number} */ matched) {
	const call = /** @type {const} */ (`POST /admin/jobs/bulk/${operation.name}`);
	stopping = new AbortController();
	let now = /** @type {Progress} */ ({
		operation,
		matched,
		done: 0,
		failed: 0,
		uncertain: false,
		problem: '',
		state: 'working',
		refusals: [],
	});
	const shows = (/** @type {Partial<Progress>} */ more) => {
		now = { ...now, state: stopping.signal.aborted ? 'stopping' : 'working', ...more };
		running.value = now;
	};
	shows({});
	let cursor = /** @type {string | undefined} */ (undefined);
	while (!stopping.signal.aborted) {
		try {
			const answer = await request({ call, body: { ...body, cursor } });
			const refusals = [...now.refusals, ...answer.errors.map((one) => `${one.job_id}: ${one.error}`)].slice(0, MOST_REFUSALS);
			shows({ done: now.done + answer.succeeded, failed: now.failed + answer.failed, problem: '', refusals });
			if (!answer.has_more) {
				running.value = { ...now, state: 'done' };
				return;
			}
			cursor = answer.next_cursor;
		} catch (error) {
			const problem = error instanceof Problem ? error : new Problem(400, { message: String(error) });
			shows({
				problem: problem.whole,
				uncertain: now.uncertain || problem.status === 0 || (problem.status >= 500 && problem.status !== 503),
			});
			if (!problem.passing) break;
			await pause(Math.max(1, problem.retryAfter) * 1_000);
		}
	}
	running.value = { ...now, state: 'stopped' };
}

/** Wait so long, or until it is to stop. */
const pause = (/** @type {number} */ ms) =>
	new Promise((resolve) => {
		const timer = setTimeout(resolve, ms);
		stopping.signal.addEventListener('abort', () => {
			clearTimeout(timer);
			resolve(undefined);
		});
	});

const WORDS = { working: 'Working', stopping: 'Stopping…', stopped: 'Stopped', done: 'Done' };

/** How far what works is, with the button that stops it. */
export function progress() {
	const now = running.value;
	if (!now) return nothing;
	const { state, done, failed, matched, operation, problem, refusals, uncertain } = now;
	const over = state === 'done' || state === 'stopped';
	const stop = () => {
		stopping.abort();
		running.value = { ...now, state: 'stopping' };
	};
	const close = () => (running.value = null);
	return html`<div class="notice ${problem && over ? 'bad' : failed || state === 'stopped' ? 'warn' : 'good'}" role="status">
		<p>${WORDS[state]}: ${uncertain ? 'at least ' : ''}${number(done)} of ${number(matched)} ${operation.done}${failed ? `, ${number(failed)} skipped` : ''}.</p>
		${problem ? html`<p>${text(problem, 500)}${over ? '' : ' It is tried again.'}</p>` : nothing}
		<progress max=${Math.max(1, matched)} value=${done + failed} aria-label="Progress"></progress>
		${refusals.length ? html`<details><summary>Why some were skipped</summary><ul>${refusals.map((one) => html`<li>${text(one)}</li>`)}</ul></details>` : nothing}
		${over ? html`<button type="button" @click=${close}>Close</button>` : html`<button type="button" ?disabled=${state === 'stopping'} @click=${stop}>Stop</button>`}
	</div>`;
}
