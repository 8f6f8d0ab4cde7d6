/** Cron expressions in words. */

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const MONTHS = ' January February March April May June July August September October November December'.split(' ');

/** @returns {string} What an expression of five fields says; the expression where words would be longer. */
export function inWords(/** @type {string} */ expression) {
	const fields = expression.trim().split(/\s+/);
	if (expression.startsWith('@')) return expression;
	const [minute = '*', hour = '*', day = '*', month = '*', weekday = '*'] = fields.length === 6 ? fields.slice(1) : fields;
	const time = times(minute, hour);
	const days = [
		weekday === '*' ? '' : `on ${list(weekday, DAYS)}`,
		day === '*' ? '' : day === 'L' ? 'on the last day' : `on day ${day.replaceAll(',', ', ')}`,
	]
		.filter(Boolean)
		.join(' or ');
	const months = month === '*' ? '' : `in ${list(month, MONTHS)}`;
	const daily = /^at /.test(time) && !days ? 'every day ' : '';
	const text = [daily + time, days && `${days}`, months].filter(Boolean).join(' ');
	return text ? text[0]?.toUpperCase() + text.slice(1) : expression;
}

function times(/** @type {string} */ minute, /** @type {string} */ hour) {
	const step = /^\*\/(\d+)$/;
	if (minute === '*' && hour === '*') return 'every minute';
	const minutes = step.exec(minute);
	if (minutes && hour === '*') return `every ${minutes[1]} minutes`;
	const hours = step.exec(hour);
	if (hours && /^\d+$/.test(minute)) return `every ${hours[1]} hours${minute === '0' ? '' : ` at minute ${minute}`}`;
	if (hour === '*' && /^[\d,]+$/.test(minute))
		return minute === '0' ? 'every hour' : `every hour at minute ${minute.replaceAll(',', ', ')}`;
	if (/^\d+$/.test(minute) && /^[\d,]+$/.test(hour))
		return `at ${hour
			.split(',')
			.map((one) => `${one.padStart(2, '0')}:${minute.padStart(2, '0')}`)
			.join(', ')}`;
	return `at minute ${minute} of hour ${hour}`;
}

function list(/** @type {string} */ field, /** @type {readonly string[]} */ names) {
	const name = (/** @type {string} */ one) =>
		names[Number(one)] ??
		(/^[a-z]{3}$/i.test(one) ? (names.find((full) => full.toLowerCase().startsWith(one.toLowerCase())) ?? one) : one);
	if (names === DAYS && /^(1-5|mon-fri)$/i.test(field)) return 'weekdays';
	return field
		.split(',')
		.map((part) => part.split('-').map(name).join(' to '))
		.join(', ');
}
